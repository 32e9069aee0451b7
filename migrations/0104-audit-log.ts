import { type Migration, now } from './migration.js'

/** The actions of moderators, and the audit log, which the database keeps append-only. */
export const auditLog: Migration = {
  async up(db) {
    await db.raw(`
      create table audit_entries (
        id bigint primary key,
        at timestamptz(3) not null,
        -- {guid, name, role}
        actor jsonb not null,
        via text not null check (via in ('api', 'console', 'command', 'system')),
        client_id text collate "C",
        action text not null,
        -- {type, guid, label}
        target jsonb not null,
        reason text,
        before jsonb,
        after jsonb,
        case_id bigint,
        batch_id bigint,
        undoes bigint,
        trace_id text,
        -- SHA-256 of the hash of the entry before and the canonical JSON of this one.
        hash bytea not null
      );
      create index audit_entries_action on audit_entries (action, id);
      create index audit_entries_target on audit_entries ((target->>'guid'), id);
      create index audit_entries_actor on audit_entries ((actor->>'name'), id);

      create function refuse_audit_change() returns trigger language plpgsql as $$
      begin
        raise exception 'audit_entries is append-only';
      end
      $$;
      create trigger audit_entries_append_only before update or delete on audit_entries
        for each row execute function refuse_audit_change();
      create trigger audit_entries_no_truncate before truncate on audit_entries
        for each statement execute function refuse_audit_change();

      create table moderation_actions (
        id bigint generated always as identity primary key,
        kind text not null,
        target_type text not null,
        target_guid text collate "C" not null,
        target_label text not null,
        actor jsonb not null,
        reason text not null,
        case_id bigint,
        batch_id bigint,
        until timestamptz(3),
        details jsonb not null default '{}',
        can_be_undone boolean not null,
        -- The action that has undone this one.
        undone_by_id bigint references moderation_actions,
        created_at timestamptz(3) not null default ${now}
      );
      create index moderation_actions_target on moderation_actions (target_guid, id);
      create index moderation_actions_case_id on moderation_actions (case_id) where case_id is not null;
      create index moderation_actions_undone_by_id on moderation_actions (undone_by_id) where undone_by_id is not null;
      -- At most one action of a kind is in force for a target.
      create unique index moderation_actions_in_force on moderation_actions (target_type, target_guid, kind)
        where can_be_undone and undone_by_id is null;
      create index moderation_actions_until on moderation_actions (until)
        where until is not null and can_be_undone and undone_by_id is null;
    `)
  },

  async down(db) {
    await db.raw(`
      drop table moderation_actions, audit_entries;
      drop function refuse_audit_change();
    `)
  },
}
