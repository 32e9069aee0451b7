import type { Migration } from './migration.js'

export const figures: Migration = {
  async up(db) {
    await db.raw(`
      -- Counters of all processes by minute. Written every few seconds, so a killed process loses its latest counts.
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
