import type { Migration } from './migration.js'

export const importAttempts: Migration = {
  async up(db) {
    await db.raw(`
      -- Attempts since the import has last made progress.
      alter table imports add column attempts smallint not null default 0
    `)
  },

  async down(db) {
    await db.raw('alter table imports drop column attempts')
  },
}
