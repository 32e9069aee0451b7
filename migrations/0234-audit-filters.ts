import { createIndexConcurrently, type Migration } from './migration.js'

/** Indexes for filters of the audit log and of the list of actions. */
const INDEXES = {
  audit_entries_at: 'on audit_entries (at)',
  moderation_actions_actor: `on moderation_actions ((actor ->> 'name'), id)`,
  moderation_actions_actor_guid: `on moderation_actions ((actor ->> 'guid'), id)`,
  moderation_actions_kind: 'on moderation_actions (kind, id)',
} as const

export const auditFilters: Migration = {
  config: { transaction: false },

  async up(db) {
    for (const [name, definition] of Object.entries(INDEXES)) await createIndexConcurrently(db, name, definition)
  },

  async down(db) {
    for (const name of Object.keys(INDEXES)) await db.raw('drop index if exists ??', [name])
  },
}
