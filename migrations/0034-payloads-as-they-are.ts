import type { Migration } from './migration.js'

/**
 * Payloads are base64 of signed or encrypted data and do not compress. With two or three thousand characters PostgreSQL tried to compress
 * each one, and moved it to the TOAST table. Now it stays in its row. Waiting rows are never changed, so their pages may be full.
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
