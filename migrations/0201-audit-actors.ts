import { createIndexConcurrently, type Migration } from './migration.js'

/** The entries of the audit log by the account of their actor, for the data that the pod has about a person. */
export const auditActors: Migration = {
  config: { transaction: false },

  async up(db) {
    await createIndexConcurrently(db, 'audit_entries_actor_guid', `on audit_entries ((actor->>'guid'), id)`)
  },

  async down(db) {
    await db.raw('drop index if exists audit_entries_actor_guid')
  },
}
