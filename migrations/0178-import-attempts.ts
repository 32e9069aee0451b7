import type { Migration } from './migration.js'

export const importAttempts: Migration = {
  async up(db) {
    await db.raw(`
      -- Attempts since the last progress of the import.
      alter table imports add column attempts smallint not null default 0
    `)
  },

  async down(db) {
    await db.raw('alter table imports drop column attempts')
  },
}
