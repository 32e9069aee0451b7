import type { Knex } from 'knex'
import { publishLiveEvents } from '../../../src/domain/notifications/enqueue-live-events.js'
import type { LiveEventRows } from '../../../src/persistence/notifications/live-event-sources.js'

/** Inserts outbox rows of `announce` jobs, one for each of these; returns their ids. */
export async function addLiveEventRows(db: Knex, all: readonly LiveEventRows[]): Promise<readonly number[]> {
  const rows: { id: number }[] = await db('outbox')
    .insert(all.map((news) => ({ queue: 'notify', name: 'announce', data: JSON.stringify(news) })))
    .returning('id')
  return rows.map(({ id }) => id)
}

/** Announces rows, as a job does. */
export async function publishRows(db: Knex, news: LiveEventRows): Promise<void> {
  await publishLiveEvents({ db }, await addLiveEventRows(db, [news]))
}
