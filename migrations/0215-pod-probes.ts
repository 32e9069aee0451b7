import type { Migration } from './migration.js'

export const podProbes: Migration = {
  async up(db) {
    await db.raw(`
      -- {at, steps} of the last probe on request of an operator.
      alter table pods add column probe jsonb
    `)
  },

  async down(db) {
    await db.raw('alter table pods drop column probe')
  },
}
