import type { Migration } from './migration.js'

export const endedSessions: Migration = {
  async up(db) {
    await db.raw(`
      -- Sessions in browsers that were ended before their time. A request that has read such a session may still store it again;
      -- no later request finds it. A session is stored under changing ids, and its uid stays.
      create table ended_sessions (
        uid text collate "C" primary key,
        ended_at timestamptz(3) not null default date_trunc('milliseconds', now())
      )
    `)
  },

  async down(db) {
    await db.raw('drop table ended_sessions')
  },
}
