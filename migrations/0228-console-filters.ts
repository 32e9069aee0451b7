import { createIndexConcurrently, type Migration } from './migration.js'

/** Indexes for filters of console lists: the audit log by host, people of this pod. */
const INDEXES = {
  audit_entries_label: `on audit_entries ((target ->> 'label'), id)`,
  audit_entries_label_host: `on audit_entries ((split_part(target ->> 'label', '@', 2)), id)`,
  people_local: 'on people (id) where pod_id is null',
} as const

export const consoleFilters: Migration = {
  config: { transaction: false },

  async up(db) {
    for (const [name, definition] of Object.entries(INDEXES)) await createIndexConcurrently(db, name, definition)
  },

  async down(db) {
    for (const name of Object.keys(INDEXES)) await db.raw('drop index if exists ??', [name])
  },
}
