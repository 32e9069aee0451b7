import { type Migration, now } from './migration.js'

export const live: Migration = {
  async up(db) {
    await db.raw(`
      -- Events for live streams, kept for as long as a client may reconnect and request missed ones. Written one
      -- transaction after the other: the ids are in the order of the commits.
      create table announcements (
        id bigint generated always as identity primary key,
        kind text not null check (kind in ('notification', 'message', 'post')),
        -- The id of the new row; it may be deleted before a client reads it.
        subject_id bigint not null,
        -- Null: all users who have the post in their main stream.
        user_id bigint references users on delete cascade,
        created_at timestamptz(3) not null default ${now},
        check (kind = 'post' or user_id is not null)
      );
      create index announcements_user_id on announcements (user_id, id) where user_id is not null;
      create index announcements_of_streams on announcements (id) where user_id is null;
      create index announcements_created_at on announcements (created_at);
    `)
  },

  async down(db) {
    await db.raw(`drop table announcements`)
  },
}
