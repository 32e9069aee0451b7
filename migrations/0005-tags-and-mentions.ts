import { type Migration, now } from './migration.js'

export const tagsAndMentions: Migration = {
  async up(db) {
    await db.raw(`
      -- Byte order, so that the unique index serves prefix searches.
      create table tags (
        id bigint generated always as identity primary key,
        name text collate "C" not null unique
      );

      create table tag_followings (
        user_id bigint not null references users on delete cascade,
        tag_id bigint not null references tags on delete cascade,
        created_at timestamptz(3) not null default ${now},
        primary key (user_id, tag_id)
      );
      create index tag_followings_tag_id on tag_followings (tag_id);

      create table taggings (
        id bigint generated always as identity primary key,
        tag_id bigint not null references tags on delete cascade,
        post_id bigint references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        -- Copied from the post, where it never changes, so that a page of a tag reads one index.
        created_at timestamptz(3) not null,
        check (num_nonnulls(post_id, comment_id) = 1)
      );
      create unique index taggings_post_once on taggings (post_id, tag_id) where post_id is not null;
      create unique index taggings_comment_once on taggings (comment_id, tag_id) where comment_id is not null;
      create index taggings_of_tag on taggings (tag_id, created_at desc, post_id desc);

      create table mentions (
        id bigint generated always as identity primary key,
        person_id bigint not null references people on delete cascade,
        post_id bigint references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        check (num_nonnulls(post_id, comment_id) = 1)
      );
      create unique index mentions_post_once on mentions (post_id, person_id) where post_id is not null;
      create unique index mentions_comment_once on mentions (comment_id, person_id) where comment_id is not null;
      create index mentions_person_id on mentions (person_id, post_id);
    `)
  },

  async down(db) {
    await db.raw(`drop table mentions, taggings, tag_followings, tags`)
  },
}
