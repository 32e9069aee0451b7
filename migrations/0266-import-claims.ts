import type { Migration } from './migration.js'

/** A worker whose import another worker has claimed meanwhile stores nothing more. */
export const importClaims: Migration = {
  async up(db) {
    await db.raw('alter table imports add column claim_id uuid')
  },

  async down(db) {
    await db.raw('alter table imports drop column claim_id')
  },
}
