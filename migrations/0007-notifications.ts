import { type Migration, now } from './migration.js'

export const notifications: Migration = {
  async up(db) {
    await db.raw(`
      create table notifications (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        user_id bigint not null references users on delete cascade,
        type text not null,
        post_id bigint references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        mention_id bigint references mentions on delete cascade,
        person_id bigint references people on delete cascade,
        -- The target. Notifications of one type have targets of one kind.
        target_id bigint not null generated always as (coalesce(mention_id, comment_id, post_id, person_id)) stored,
        -- Birthdays only: at most one per person and day.
        day date,
        read boolean not null default false,
        -- Marked unread while a newer notification of the same target is unread. It stays unread, and gets no new actors.
        superseded boolean not null default false,
        created_at timestamptz(3) not null default ${now},
        updated_at timestamptz(3) not null default ${now},
        check (case
          when type in ('commented_on_post', 'also_commented', 'liked', 'reshared')
            then post_id is not null and num_nonnulls(comment_id, mention_id, person_id, day) = 0
          when type = 'liked_comment'
            then num_nulls(post_id, comment_id) = 0 and num_nonnulls(mention_id, person_id, day) = 0
          when type = 'mentioned'
            then num_nulls(post_id, mention_id) = 0 and num_nonnulls(comment_id, person_id, day) = 0
          when type = 'mentioned_in_comment'
            then num_nulls(post_id, comment_id, mention_id) = 0 and num_nonnulls(person_id, day) = 0
          when type = 'started_sharing'
            then person_id is not null and num_nonnulls(post_id, comment_id, mention_id, day) = 0
          when type = 'contacts_birthday'
            then num_nulls(person_id, day) = 0 and num_nonnulls(post_id, comment_id, mention_id) = 0
          else false
        end)
      );
      create unique index notifications_merging on notifications (user_id, type, target_id)
        where not read and not superseded and type <> 'contacts_birthday';
      create unique index notifications_mention_once on notifications (mention_id) where mention_id is not null;
      create unique index notifications_birthday_once on notifications (user_id, person_id, day) where day is not null;
      create index notifications_newest on notifications (user_id, created_at desc, id desc);
      create index notifications_updated on notifications (user_id, updated_at desc, id desc);
      create index notifications_unread on notifications (user_id, created_at desc, id desc) where not read;
      create index notifications_of_type on notifications (user_id, type, created_at desc, id desc);
      create index notifications_post_id on notifications (post_id) where post_id is not null;
      create index notifications_comment_id on notifications (comment_id) where comment_id is not null;
      create index notifications_person_id on notifications (person_id) where person_id is not null;

      create table notification_actors (
        notification_id bigint not null references notifications on delete cascade,
        person_id bigint not null references people on delete cascade,
        -- The order of arrival.
        id bigint generated always as identity,
        primary key (notification_id, person_id)
      );
      create index notification_actors_person_id on notification_actors (person_id);

      create table reports (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        post_id bigint references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        reason text not null,
        reviewed_at timestamptz(3),
        reviewer_id bigint references users on delete set null,
        created_at timestamptz(3) not null default ${now},
        check (num_nonnulls(post_id, comment_id) = 1)
      );
      create unique index reports_post_once on reports (user_id, post_id) where post_id is not null;
      create unique index reports_comment_once on reports (user_id, comment_id) where comment_id is not null;
      create index reports_post_id on reports (post_id) where post_id is not null;
      create index reports_comment_id on reports (comment_id) where comment_id is not null;
      create index reports_reviewer_id on reports (reviewer_id) where reviewer_id is not null;
      create index reports_open on reports (created_at, id) where reviewed_at is null;
    `)
  },

  async down(db) {
    await db.raw(`drop table reports, notification_actors, notifications`)
  },
}
