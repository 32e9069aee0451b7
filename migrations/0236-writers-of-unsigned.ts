import type { Migration } from './migration.js'

/**
 * The local account that has written a comment, like or vote without a signature, and has moved away since: its key can sign it later.
 * Without it, nothing shows who of two accounts that have moved to one person has written what.
 */
export const writersOfUnsigned: Migration = {
  async up(db) {
    await db.raw(`
      alter table comments add column written_by_id bigint;
      alter table likes add column written_by_id bigint;
      alter table poll_participations add column written_by_id bigint
    `)
  },

  async down(db) {
    await db.raw(`
      alter table comments drop column written_by_id;
      alter table likes drop column written_by_id;
      alter table poll_participations drop column written_by_id
    `)
  },
}
