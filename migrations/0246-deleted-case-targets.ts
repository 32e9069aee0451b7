import type { Migration } from './migration.js'

/**
 * Notes in a case that its target is deleted, and by whom: also in cases that no user has reported, and in those about people and messages.
 * Bulk work of moderators and admins sets `pod.deleted_by` for its transaction.
 */
export const deletedCaseTargets: Migration = {
  async up(db) {
    await db.raw(`
      create function note_deleted_case_target() returns trigger language plpgsql as $$
      declare
        deleter text = coalesce(
          nullif(current_setting('pod.deleted_by', true), ''), case when tg_argv[0] = 'person' then 'account_closed' end
        );
      begin
        with noted as (
          update moderation_cases set target_deleted = coalesce(deleter, case
            when exists (select from people where people.id = author_id and people.closed_at is not null) then 'account_closed'
            -- A conversation without readers is deleted, too.
            when tg_argv[0] <> 'message' then 'author'
          end)
          where target_type = tg_argv[0] and target_guid = old.guid and target_deleted is null
          returning id, target_deleted
        )
        insert into moderation_case_events (case_id, event)
        select id, 'target_deleted' from noted where target_deleted is not null;
        return null;
      end
      $$;
      create trigger note_deleted_case_target after delete on posts
        for each row when (old.author_id is not null) execute function note_deleted_case_target('post');
      -- A post with very many rows below it is first made a post without an author.
      create trigger note_soft_deleted_case_target after update of author_id on posts
        for each row when (old.author_id is not null and new.author_id is null) execute function note_deleted_case_target('post');
      create trigger note_deleted_case_target after delete on comments
        for each row execute function note_deleted_case_target('comment');
      create trigger note_deleted_case_target after delete on messages
        for each row execute function note_deleted_case_target('message');
      create trigger note_closed_case_target after update of closed_at on people
        for each row when (old.closed_at is null and new.closed_at is not null) execute function note_deleted_case_target('person');

      drop trigger reports_target_deleted on reports;
      drop function note_deleted_report_target();
    `)
  },

  async down(db) {
    await db.raw(`
      drop trigger note_deleted_case_target on posts;
      drop trigger note_soft_deleted_case_target on posts;
      drop trigger note_deleted_case_target on comments;
      drop trigger note_deleted_case_target on messages;
      drop trigger note_closed_case_target on people;
      drop function note_deleted_case_target();

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
}
