import type { Migration } from './migration.js'

export const lastWrites: Migration = {
  async up(db) {
    await db.raw(`
      -- The WAL position of the last write or event of a user: a replica that has not replayed it would show an old state.
      -- Unlogged: the rows matter for seconds only, and a replica must not have them.
      create unlogged table last_writes (
        user_id bigint primary key references users on delete cascade,
        -- Position in the log in bytes.
        position bigint not null,
        noted_at timestamptz(3) not null
      ) with (fillfactor = 70);
    `)
  },

  async down(db) {
    await db.raw(`drop table last_writes`)
  },
}
