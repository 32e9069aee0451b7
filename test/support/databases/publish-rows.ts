import type { Knex } from 'knex'
import { publishLiveEvents } from '../../../src/domain/notifications/enqueue-live-events.js'
import type { LiveEventRows } from '../../../src/persistence/notifications/live-event-sources.js'

/** Inserts one outbox row of an `announce` job for each of `events`. Returns their ids. */
export async function addLiveEventRows(db: Knex, events: readonly LiveEventRows[]): Promise<readonly number[]> {
  const rows: { id: number }[] = await db('outbox')
    .insert(events.map((event) => ({ queue: 'notify', name: 'announce', data: JSON.stringify(event) })))
    .returning('id')
  return rows.map(({ id }) => id)
}

/** Publishes live events, as a job does. */
export async function publishRows(db: Knex, event: LiveEventRows): Promise<void> {
  await publishLiveEvents({ db }, await addLiveEventRows(db, [event]))
}
