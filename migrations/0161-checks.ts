import type { Migration } from './migration.js'

/** The last result of each check of this pod from outside. */
export const checks: Migration = {
  async up(db) {
    await db.raw(`
      create table checks (
        name text primary key,
        state text not null check (state in ('ok', 'warn', 'fail')),
        message text not null,
        -- Only for the check of the certificate: its end.
        certificate_ends_at timestamptz(3),
        checked_at timestamptz(3) not null default date_trunc('milliseconds', now())
      )
    `)
  },

  async down(db) {
    await db.raw('drop table checks')
  },
}
