import { type Migration, now } from './migration.js'

/** All reports of one target are one case. Cases and reports stay when the target, its author or the author's pod is deleted. */
export const moderationCases: Migration = {
  async up(db) {
    await db.raw(`
      create table moderation_cases (
        id bigint generated always as identity primary key,
        kind text not null default 'report' check (kind in ('report', 'filter', 'cluster')),
        target_type text not null check (target_type in ('post', 'comment', 'person', 'message', 'cluster')),
        target_guid text collate "C" not null,
        state text not null default 'open' check (state in ('open', 'taken', 'resolved', 'dismissed')),
        -- Copy of the target at the first report.
        author_id bigint references people on delete set null,
        author_guid text collate "C",
        author_address text collate "C",
        public boolean not null,
        text text,
        parent_guid text collate "C",
        photo_guids text[] collate "C" not null default '{}',
        target_created_at timestamptz(3),
        target_deleted text check (target_deleted in ('author', 'moderator', 'account_closed', 'purge')),
        report_count integer not null default 0,
        reporter_count integer not null default 0,
        ignore_further boolean not null default false,
        taken_by_id bigint references users on delete set null,
        taken_at timestamptz(3),
        first_reported_at timestamptz(3) not null default ${now},
        last_reported_at timestamptz(3) not null default ${now},
        changed_at timestamptz(3) not null default ${now},
        closed_at timestamptz(3),
        unique (target_type, target_guid)
      );
      create index moderation_cases_author_id on moderation_cases (author_id) where author_id is not null;
      create index moderation_cases_taken_by_id on moderation_cases (taken_by_id) where taken_by_id is not null;
      create index moderation_cases_unclosed on moderation_cases (state, reporter_count desc, first_reported_at, id)
        where closed_at is null;
      create index moderation_cases_closed on moderation_cases (closed_at) where closed_at is not null;

      alter table moderation_actions
        add constraint moderation_actions_case_id_fkey foreign key (case_id) references moderation_cases on delete set null;

      create table moderation_case_events (
        id bigint generated always as identity primary key,
        case_id bigint not null references moderation_cases on delete cascade,
        at timestamptz(3) not null default ${now},
        actor_id bigint references users on delete set null,
        event text not null check (event in (
          'reported', 'taken', 'released', 'noted', 'action', 'undone', 'resolved', 'dismissed', 'reopened', 'forwarded',
          'target_deleted'
        )),
        text text,
        action_id bigint references moderation_actions
      );
      create index moderation_case_events_case_id on moderation_case_events (case_id, id);
      create index moderation_case_events_actor_id on moderation_case_events (actor_id) where actor_id is not null;
      create index moderation_case_events_action_id on moderation_case_events (action_id) where action_id is not null;

      alter table users add column reports_muted boolean not null default false;

      insert into moderation_cases (
        target_type, target_guid, author_id, author_guid, author_address, public, text, parent_guid, photo_guids,
        target_created_at, report_count, reporter_count, first_reported_at, last_reported_at, state, closed_at
      )
      select
        'post', posts.guid, people.id, people.guid, people.address, posts.public, posts.text, roots.guid,
        array(select photos.guid from photos where photos.post_id = posts.id order by photos.position, photos.id),
        posts.created_at, reported.count, reported.count, reported.first, reported.last,
        case when reported.is_open then 'open' else 'dismissed' end, case when not reported.is_open then reported.last end
      from (
        select post_id, count(*) as count, min(created_at) as first, max(created_at) as last, bool_or(reviewed_at is null) as is_open
        from reports where post_id is not null group by post_id
      ) as reported
      join posts on posts.id = reported.post_id
      join people on people.id = posts.author_id
      left join posts as roots on roots.id = posts.root_id
      union all
      select
        'comment', comments.guid, people.id, people.guid, people.address, posts.public, comments.text, posts.guid, '{}',
        comments.created_at, reported.count, reported.count, reported.first, reported.last,
        case when reported.is_open then 'open' else 'dismissed' end, case when not reported.is_open then reported.last end
      from (
        select comment_id, count(*) as count, min(created_at) as first, max(created_at) as last, bool_or(reviewed_at is null) as is_open
        from reports where comment_id is not null group by comment_id
      ) as reported
      join comments on comments.id = reported.comment_id
      join posts on posts.id = comments.post_id
      join people on people.id = comments.author_id;

      alter table reports add column case_id bigint references moderation_cases on delete cascade;
      update reports set case_id = moderation_cases.id
      from moderation_cases, posts
      where posts.id = reports.post_id and target_type = 'post' and target_guid = posts.guid;
      update reports set case_id = moderation_cases.id
      from moderation_cases, comments
      where comments.id = reports.comment_id and target_type = 'comment' and target_guid = comments.guid;
      insert into moderation_case_events (case_id, at, actor_id, event) select case_id, created_at, user_id, 'reported' from reports where case_id is not null;

      drop index reports_open;
      alter table reports
        drop constraint reports_check,
        drop constraint reports_post_id_fkey,
        drop constraint reports_comment_id_fkey,
        add constraint reports_post_id_fkey foreign key (post_id) references posts on delete set null,
        add constraint reports_comment_id_fkey foreign key (comment_id) references comments on delete set null,
        add check (num_nonnulls(post_id, comment_id) <= 1);
      create unique index reports_case_once on reports (case_id, user_id);
      create index reports_of_user on reports (user_id, created_at desc, id desc);

      -- Runs only for reported targets: the foreign keys above change these rows.
      create function note_deleted_report_target() returns trigger language plpgsql as $$
      begin
        with noted as (
          update moderation_cases set target_deleted = case
            when exists (select from people where people.id = author_id and people.closed_at is not null) then 'account_closed'
            else 'author'
          end
          where id = old.case_id and target_deleted is null
          returning id
        )
        insert into moderation_case_events (case_id, event) select id, 'target_deleted' from noted;
        return null;
      end
      $$;
      create trigger reports_target_deleted after update of post_id, comment_id on reports
        for each row when (num_nonnulls(old.post_id, old.comment_id) > num_nonnulls(new.post_id, new.comment_id))
        execute function note_deleted_report_target();
    `)
  },

  async down(db) {
    await db.raw(`
      drop trigger reports_target_deleted on reports;
      drop function note_deleted_report_target();
      delete from reports where num_nonnulls(post_id, comment_id) <> 1;
      drop index reports_of_user, reports_case_once;
      alter table reports
        drop column case_id,
        drop constraint reports_check,
        drop constraint reports_post_id_fkey,
        drop constraint reports_comment_id_fkey,
        add constraint reports_post_id_fkey foreign key (post_id) references posts on delete cascade,
        add constraint reports_comment_id_fkey foreign key (comment_id) references comments on delete cascade,
        add check (num_nonnulls(post_id, comment_id) = 1);
      create index reports_open on reports (created_at, id) where reviewed_at is null;
      alter table users drop column reports_muted;
      alter table moderation_actions drop constraint moderation_actions_case_id_fkey;
      drop table moderation_case_events, moderation_cases;
    `)
  },
}
