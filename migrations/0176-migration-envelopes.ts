import type { Migration } from './migration.js'

export const migrationEnvelopes: Migration = {
  async up(db) {
    await db.raw(`
      -- The signed message as it was received: this pod shows it to every pod that looks up an account that has moved away.
      alter table account_migrations add column envelope text
    `)
  },

  async down(db) {
    await db.raw('alter table account_migrations drop column envelope')
  },
}
