import type { Migration } from './migration.js'

/** Overdue messages of unknown signers are found without reading those of known signers. */
export const unprovenDue: Migration = {
  async up(db) {
    await db.raw('create index waiting_unsigned_due_at on waiting (due_at) where not signed')
  },
  async down(db) {
    await db.raw('drop index waiting_unsigned_due_at')
  },
}
