import { type Migration, now } from './migration.js'

export const posts: Migration = {
  async up(db) {
    await db.raw(`
      create table posts (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        author_id bigint not null references people,
        type text not null check (type in ('StatusMessage', 'Reshare')),
        public boolean not null,
        text text not null default '',
        provider_display_name text,
        embed jsonb,
        -- Reshares only; null after the root was deleted.
        root_id bigint references posts on delete set null,
        comments_count integer not null default 0 check (comments_count >= 0),
        likes_count integer not null default 0 check (likes_count >= 0),
        reshares_count integer not null default 0 check (reshares_count >= 0),
        -- In no index: otherwise each comment would write every index of the post.
        interacted_at timestamptz(3) not null default ${now},
        created_at timestamptz(3) not null default ${now},
        check (type = 'StatusMessage' or public),
        check (type = 'Reshare' or root_id is null)
      ) with (fillfactor = 85);
      create unique index posts_reshare_once on posts (author_id, root_id) where root_id is not null;
      create index posts_root_id on posts (root_id, id) where root_id is not null;
      create index posts_of_author on posts (author_id, created_at desc, id desc);
      create index posts_newest on posts (created_at desc, id desc);

      create table photos (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        author_id bigint not null references people,
        post_id bigint references posts on delete cascade,
        -- The post that a remote photo names, until that post arrives.
        post_guid text collate "C",
        position smallint not null default 0,
        public boolean not null default false,
        pending boolean not null default false,
        text text,
        -- Null: the file is stored on this pod.
        remote_path text,
        name text not null,
        height integer,
        width integer,
        created_at timestamptz(3) not null default ${now}
      );
      create index photos_post_id on photos (post_id, position, id) where post_id is not null;
      create index photos_post_guid on photos (post_guid) where post_id is null and post_guid is not null;
      create index photos_of_author on photos (author_id, created_at desc, id desc);
      create index photos_pending on photos (created_at) where pending;

      -- Coordinates are texts: they are relayed exactly as received.
      create table locations (
        post_id bigint primary key references posts on delete cascade,
        address text not null,
        lat text not null,
        lng text not null
      );

      create table polls (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        post_id bigint not null unique references posts on delete cascade,
        question text not null
      );

      create table poll_answers (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        poll_id bigint not null references polls on delete cascade,
        position smallint not null,
        answer text not null,
        vote_count integer not null default 0 check (vote_count >= 0),
        -- The key of votes: an answer of one poll.
        unique (poll_id, id)
      );

      -- The aspects with which private content was shared.
      create table post_aspects (
        post_id bigint not null references posts on delete cascade,
        aspect_id bigint not null references aspects on delete cascade,
        primary key (post_id, aspect_id)
      );
      create index post_aspects_aspect_id on post_aspects (aspect_id, post_id);
      create table photo_aspects (
        photo_id bigint not null references photos on delete cascade,
        aspect_id bigint not null references aspects on delete cascade,
        primary key (photo_id, aspect_id)
      );
      create index photo_aspects_aspect_id on photo_aspects (aspect_id);

      -- The local people who received private content.
      create table post_visibilities (
        user_id bigint not null references users on delete cascade,
        post_id bigint not null references posts on delete cascade,
        primary key (user_id, post_id)
      );
      create index post_visibilities_post_id on post_visibilities (post_id);
      create table photo_visibilities (
        user_id bigint not null references users on delete cascade,
        photo_id bigint not null references photos on delete cascade,
        primary key (user_id, photo_id)
      );
      create index photo_visibilities_photo_id on photo_visibilities (photo_id);

      create table hidden_posts (
        user_id bigint not null references users on delete cascade,
        post_id bigint not null references posts on delete cascade,
        created_at timestamptz(3) not null default ${now},
        primary key (user_id, post_id)
      );
      create index hidden_posts_post_id on hidden_posts (post_id);

      -- Posts about which these users get no notification.
      create table muted_posts (
        user_id bigint not null references users on delete cascade,
        post_id bigint not null references posts on delete cascade,
        created_at timestamptz(3) not null default ${now},
        primary key (user_id, post_id)
      );
      create index muted_posts_post_id on muted_posts (post_id);
    `)
  },

  async down(db) {
    await db.raw(`
      drop table muted_posts, hidden_posts, photo_visibilities, post_visibilities, photo_aspects, post_aspects,
        poll_answers, polls, locations, photos, posts
    `)
  },
}
