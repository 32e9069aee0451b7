import type { Migration } from './migration.js'

/** The terms of the operator that people accept when they sign up. */
export const acceptedTerms: Migration = {
  async up(db) {
    await db.raw(`
      -- The beginning of the SHA-256 of the text; null: the pod had no terms, or a command has made the account.
      alter table users add column terms_version text collate "C", add column terms_accepted_at timestamptz(3);
      alter table pending_sign_ups add column terms_version text collate "C";
    `)
  },

  async down(db) {
    await db.raw(`
      alter table pending_sign_ups drop column terms_version;
      alter table users drop column terms_accepted_at, drop column terms_version
    `)
  },
}
