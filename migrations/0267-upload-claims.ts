import type { Migration } from './migration.js'

/** A worker whose upload another worker has claimed meanwhile stores no check of it. */
export const uploadClaims: Migration = {
  async up(db) {
    await db.raw('alter table import_uploads add column claim_id uuid')
  },

  async down(db) {
    await db.raw('alter table import_uploads drop column claim_id')
  },
}
