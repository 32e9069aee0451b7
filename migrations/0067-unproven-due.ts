import type { Migration } from './migration.js'

/** Messages of unknown signers whose time is over are found without reading those of known ones. */
export const unprovenDue: Migration = {
  async up(db) {
    await db.raw('create index waiting_unsigned_due_at on waiting (due_at) where not signed')
  },
  async down(db) {
    await db.raw('drop index waiting_unsigned_due_at')
  },
}
