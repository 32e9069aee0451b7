import { createIndexConcurrently, type Migration } from './migration.js'

/** Indexes for filters of lists in the console: cases about people of a pod in their order, dead letters about a type of entity. */
const INDEXES = {
  moderation_cases_of_pod: `on moderation_cases (
    (split_part(author_address, '@', 2)),
    (case state when 'open' then 0 when 'taken' then 1 else 2 end), reporter_count desc, first_reported_at, id
  )`,
  outbox_failed_by_entity: `on outbox ((coalesce(data ->> 'record', data ->> 'type')), failed_at desc, id desc)
    where failed_at is not null`,
} as const

export const consoleLists: Migration = {
  config: { transaction: false },

  async up(db) {
    for (const [name, definition] of Object.entries(INDEXES)) await createIndexConcurrently(db, name, definition)
  },

  async down(db) {
    for (const name of Object.keys(INDEXES)) await db.raw('drop index if exists ??', [name])
  },
}
