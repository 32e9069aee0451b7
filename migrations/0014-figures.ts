import type { Migration } from './migration.js'

export const figures: Migration = {
  async up(db) {
    await db.raw(`
      -- What the processes of this pod have counted, minute by minute. Written every few seconds: a killed process takes its
      -- last ones along.
      create table figures (
        minute timestamptz(0) not null,
        name text collate "C" not null,
        labels jsonb not null check (jsonb_typeof(labels) = 'object'),
        count bigint not null check (count > 0),
        primary key (minute, name, labels)
      ) with (fillfactor = 85);
    `)
  },

  async down(db) {
    await db.raw(`drop table figures`)
  },
}
