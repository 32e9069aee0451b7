import type { Knex } from 'knex'
import { publishAnnouncements } from '../../../src/domain/notifications/announcements.js'
import type { AnnouncedRows } from '../../../src/persistence/notifications/announcements.js'

/** Inserts outbox rows of `announce` jobs, one for each of these; returns their ids. */
export async function addAnnounceRows(db: Knex, all: readonly AnnouncedRows[]): Promise<readonly number[]> {
  const rows: { id: number }[] = await db('outbox')
    .insert(all.map((news) => ({ queue: 'notify', name: 'announce', data: JSON.stringify(news) })))
    .returning('id')
  return rows.map(({ id }) => id)
}

/** Announces rows, as a job does. */
export async function announce(db: Knex, news: AnnouncedRows): Promise<void> {
  await publishAnnouncements({ db }, await addAnnounceRows(db, [news]))
}
