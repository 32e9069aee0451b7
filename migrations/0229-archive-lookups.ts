import type { Migration } from './migration.js'

export const archiveLookups: Migration = {
  async up(db) {
    await db.raw(`
      -- Lookups of people by imports and their checks, of all processes and accounts together.
      create table archive_lookups (
        host text collate "C" primary key,
        -- The day in UTC.
        day date not null,
        -- Lookups on this day.
        count integer not null check (count > 0),
        -- When the next lookup may begin.
        next_at timestamptz(3) not null
      )
    `)
  },

  async down(db) {
    await db.raw('drop table archive_lookups')
  },
}
