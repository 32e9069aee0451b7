import type { Migration } from './migration.js'

export const asking: Migration = {
  async up(db) {
    await db.raw(`
      -- The fetch of the missing entity, and the outbox row of that job. Null: it is not fetched.
      alter table waiting add column asked_of text collate "C", add column asked_by bigint;
      create index waiting_asked_by on waiting (asked_by) where asked_by is not null;
    `)
  },

  async down(db) {
    await db.raw(`alter table waiting drop column asked_of, drop column asked_by`)
  },
}
