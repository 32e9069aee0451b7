import type { Migration } from './migration.js'

/**
 * A payload is base64 of what nobody can shorten, and has two or three thousand letters: the server tried to compress each, and moved it
 * to a table beside this one. It stays in its row, as it is; rows that wait are never changed, so their pages may be full.
 * The outbox first: transactions that store a message lock its outbox row before rows of waiting messages.
 */
export const payloadsAsTheyAre: Migration = {
  async up(db) {
    await db.raw(`
      alter table outbox alter payload set storage external;
      alter table outbox set (toast_tuple_target = 8160);
      alter table waiting alter payload set storage external;
      alter table waiting set (fillfactor = 100, toast_tuple_target = 8160)
    `)
  },

  async down(db) {
    await db.raw(`
      alter table outbox alter payload set storage extended;
      alter table outbox reset (toast_tuple_target);
      alter table waiting alter payload set storage extended;
      alter table waiting set (fillfactor = 70);
      alter table waiting reset (toast_tuple_target)
    `)
  },
}
