import type { Migration } from './migration.js'

export const originOfSecondSteps: Migration = {
  async up(db) {
    await db.raw(`
      alter table second_steps
        -- When the password was given; null: only the factor was required.
        add column password_at timestamptz(3),
        -- The session that lacks only the factor, and has to be presented with the code.
        add column session_uid text collate "C"
    `)
  },

  async down(db) {
    await db.raw('alter table second_steps drop column password_at, drop column session_uid')
  },
}
