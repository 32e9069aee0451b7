import { type Migration, now } from './migration.js'

export const retention: Migration = {
  async up(db) {
    await db.raw(`
      -- When the post was stored on this pod; older posts have the time of this migration.
      alter table posts add column stored_at timestamptz(3) not null default ${now};

      -- Progress of the running removal of old rows, by category. If it has ended (finished_at), the next run starts a day later.
      create table prune_progress (
        category text collate "C" primary key,
        last_id bigint not null default 0,
        finished_at timestamptz(3)
      );
    `)
  },

  async down(db) {
    await db.raw(`
      drop table prune_progress;
      alter table posts drop column stored_at;
    `)
  },
}
