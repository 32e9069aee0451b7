import { type Migration, now } from './migration.js'

/**
 * Data for relaying an entity again: the signature of the author, and every received element, known or not, as [name, text] in the
 * signed order.
 */
const signature = `
      author_signature text,
      signed_elements jsonb check (jsonb_typeof(signed_elements) = 'array'),
`

export const interactions: Migration = {
  async up(db) {
    await db.raw(`
      create table comments (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        post_id bigint not null references posts on delete cascade,
        author_id bigint not null references people,
        text text not null,
        likes_count integer not null default 0 check (likes_count >= 0),
        ${signature}
        created_at timestamptz(3) not null default ${now}
      );
      create index comments_under_post on comments (post_id, created_at, id);
      create index comments_author_id on comments (author_id, post_id);

      -- Two columns for the target instead of type and id: the foreign keys delete the likes with their target.
      create table likes (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        author_id bigint not null references people,
        post_id bigint references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        -- False: a dislike, which is not counted.
        positive boolean not null default true,
        ${signature}
        created_at timestamptz(3) not null default ${now},
        check (num_nonnulls(post_id, comment_id) = 1)
      );
      create unique index likes_post_once on likes (author_id, post_id) where post_id is not null;
      create unique index likes_comment_once on likes (author_id, comment_id) where comment_id is not null;
      create index likes_post_id on likes (post_id, id) where post_id is not null;
      create index likes_comment_id on likes (comment_id, id) where comment_id is not null;

      create table poll_participations (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        poll_id bigint not null references polls on delete cascade,
        poll_answer_id bigint not null,
        author_id bigint not null references people,
        ${signature}
        created_at timestamptz(3) not null default ${now},
        unique (poll_id, author_id),
        foreign key (poll_id, poll_answer_id) references poll_answers (poll_id, id) on delete cascade
      );
      create index poll_participations_author_id on poll_participations (author_id);
      create index poll_participations_poll_answer_id on poll_participations (poll_id, poll_answer_id);

      create table participations (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        post_id bigint not null references posts on delete cascade,
        author_id bigint not null references people,
        -- The number of subscriptions, comments, likes, votes and reshares that keep this row.
        count integer not null default 1 check (count > 0),
        created_at timestamptz(3) not null default ${now},
        unique (post_id, author_id)
      );
      create index participations_author_id on participations (author_id, post_id);
    `)
  },

  async down(db) {
    await db.raw(`drop table participations, poll_participations, likes, comments`)
  },
}
