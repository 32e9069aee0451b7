import type { Migration } from './migration.js'

/** Tables and a column get the names that the code uses. */
export const plainNames: Migration = {
  async up(db) {
    await db.raw(`
      alter table conversation_strangers rename to conversation_unknown_participants;
      alter index conversation_strangers_address rename to conversation_unknown_participants_address;
      alter table involvements rename to activity_entries;
      alter index involvements_latest rename to activity_entries_latest;
    `)
    // Older databases have the tenth column of deliveries under its former name.
    const { rows } = await db.raw(
      `select attname as name from pg_attribute where attrelid = 'deliveries'::regclass and attnum = 10 and attname <> ?`,
      ['encrypted_envelope'],
    )
    for (const { name } of rows) await db.raw('alter table deliveries rename column ?? to encrypted_envelope', [name])
  },

  async down(db) {
    await db.raw(`
      alter index activity_entries_latest rename to involvements_latest;
      alter table activity_entries rename to involvements;
      alter index conversation_unknown_participants_address rename to conversation_strangers_address;
      alter table conversation_unknown_participants rename to conversation_strangers;
    `)
  },
}
