import type { Migration } from './migration.js'

/**
 * Hidden content stays in the database. A hidden post is not public and has no readers, so that the conditions of all lists hold for it
 * without another one.
 */
export const hiddenContent: Migration = {
  async up(db) {
    await db.raw(`
      alter table posts
        -- Null: the post is not hidden. Otherwise whether it was public.
        add column public_before_hiding boolean,
        drop constraint posts_check,
        add constraint posts_check check (type = 'StatusMessage' or public or public_before_hiding is true or author_id is null)
          not valid;
      alter table photos add column public_before_hiding boolean;
      alter table comments add column hidden boolean not null default false;
      -- Tombstones of moderators are not pruned.
      alter table tombstones add column permanent boolean not null default false;

      -- The readers of hidden private posts and their photos.
      create table hidden_post_visibilities (
        user_id bigint not null references users on delete cascade,
        post_id bigint not null references posts on delete cascade,
        primary key (post_id, user_id)
      );
      create index hidden_post_visibilities_user_id on hidden_post_visibilities (user_id);
      create table hidden_photo_visibilities (
        user_id bigint not null references users on delete cascade,
        photo_id bigint not null references photos on delete cascade,
        primary key (photo_id, user_id)
      );
      create index hidden_photo_visibilities_user_id on hidden_photo_visibilities (user_id);

      -- Notifications about hidden content, as they were.
      create table hidden_notifications (
        id bigint primary key,
        user_id bigint not null references users on delete cascade,
        post_id bigint not null references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        notification jsonb not null,
        actor_ids bigint[] not null
      );
      create index hidden_notifications_user_id on hidden_notifications (user_id);
      create index hidden_notifications_post_id on hidden_notifications (post_id);
      create index hidden_notifications_comment_id on hidden_notifications (comment_id) where comment_id is not null;

      -- Why content is hidden: it is shown again when no action is left.
      create table hidden_content (
        action_id bigint not null references moderation_actions on delete cascade,
        post_id bigint references posts on delete cascade,
        comment_id bigint references comments on delete cascade,
        check (num_nonnulls(post_id, comment_id) = 1)
      );
      create unique index hidden_content_post on hidden_content (post_id, action_id) where post_id is not null;
      create unique index hidden_content_comment on hidden_content (comment_id, action_id) where comment_id is not null;
      create index hidden_content_action_id on hidden_content (action_id);
    `)
  },

  async down(db) {
    await db.raw(`
      drop table hidden_content, hidden_notifications;
      update posts set public = public_before_hiding where public_before_hiding is not null and author_id is not null;
      update photos set public = public_before_hiding where public_before_hiding is not null;
      insert into post_visibilities (user_id, post_id, author_id, created_at)
      select user_id, posts.id, posts.author_id, posts.created_at
      from hidden_post_visibilities join posts on posts.id = post_id where posts.author_id is not null
      on conflict do nothing;
      insert into photo_visibilities (user_id, photo_id) select user_id, photo_id from hidden_photo_visibilities
      on conflict do nothing;
      drop table hidden_photo_visibilities, hidden_post_visibilities;
      alter table tombstones drop column permanent;
      alter table comments drop column hidden;
      alter table photos drop column public_before_hiding;
      alter table posts
        drop column public_before_hiding,
        add constraint posts_check check (type = 'StatusMessage' or public) not valid;
    `)
  },
}
