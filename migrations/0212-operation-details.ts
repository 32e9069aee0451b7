import type { Migration } from './migration.js'

export const operationDetails: Migration = {
  async up(db) {
    await db.raw(`
      -- What the work needs beside its target, and where it continues.
      alter table operations add column details jsonb not null default '{}'
    `)
  },

  async down(db) {
    await db.raw('alter table operations drop column details')
  },
}
