import { type Migration, now } from './migration.js'

/** The content of a blocked person is hidden in chunks, likes too. */
export const personContent: Migration = {
  async up(db) {
    await db.raw(`
      -- The author is blocked: the like is not counted.
      alter table likes add column hidden boolean not null default false;

      -- People whose block has begun or ended, with the place where the next chunk continues.
      create table person_content_changes (
        person_id bigint primary key references people on delete cascade,
        step text not null default 'posts' check (step in ('posts', 'comments', 'likes_of_posts', 'likes_of_comments')),
        after_time timestamptz(3),
        after_id bigint,
        after_second_id bigint,
        created_at timestamptz(3) not null default ${now}
      );

      -- Files of hidden photos are not served.
      create index photos_hidden_files on photos (name) where public_before_hiding is not null and remote_path is null;

      -- Each batch of received messages looks for blocks of the last minute.
      create index person_restrictions_blocking on person_restrictions (created_at) where kind = 'block';
    `)
  },

  async down(db) {
    await db.raw(`
      update posts set likes_count = likes_count + lost.count
      from (select post_id, count(*) from likes where hidden and positive and post_id is not null group by post_id) as lost
      where posts.id = lost.post_id;
      update comments set likes_count = likes_count + lost.count
      from (select comment_id, count(*) from likes where hidden and positive and comment_id is not null group by comment_id) as lost
      where comments.id = lost.comment_id;
      drop index person_restrictions_blocking, photos_hidden_files;
      drop table person_content_changes;
      alter table likes drop column hidden;
    `)
  },
}
