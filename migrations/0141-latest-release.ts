import type { Migration } from './migration.js'

export const latestRelease: Migration = {
  async up(db) {
    await db.raw(`
      -- The newest version of the program, as UPDATE_CHECK_URL names it.
      create table latest_release (
        id smallint primary key default 1 check (id = 1),
        version text not null,
        checked_at timestamptz(3) not null
      )
    `)
  },

  async down(db) {
    await db.raw('drop table latest_release')
  },
}
