import { type Migration, now } from './migration.js'

/** Long work of moderators and admins, done by a job in chunks, and lists of rules that are imported by it. */
export const operations: Migration = {
  async up(db) {
    await db.raw(`
      create table operations (
        id bigint generated always as identity primary key,
        kind text not null,
        -- The thing that it changes: two operations of a kind do not run on one target.
        target text collate "C" not null,
        state text not null default 'queued' check (state in ('queued', 'running', 'done', 'failed', 'undone')),
        done integer not null default 0,
        total integer not null,
        skipped integer not null default 0,
        errors jsonb not null default '[]',
        -- {guid, name, role, via}
        actor jsonb not null,
        reason text not null,
        created_at timestamptz(3) not null default ${now},
        changed_at timestamptz(3) not null default ${now}
      );
      create unique index operations_unfinished on operations (kind, target) where state in ('queued', 'running');

      create table pod_rule_imports (
        id bigint generated always as identity primary key,
        mode text not null check (mode in ('keep', 'stricter', 'replace')),
        state text not null default 'planned' check (state in ('planned', 'applied', 'undone')),
        created_by text not null,
        created_at timestamptz(3) not null default ${now}
      );
      create table pod_rule_import_rows (
        id bigint generated always as identity primary key,
        import_id bigint not null references pod_rule_imports on delete cascade,
        domain text collate "C" not null,
        severity text not null,
        state text check (state in ('limited', 'blocked')),
        subdomains boolean not null default true,
        public_comment text not null,
        obfuscate boolean not null,
        reject_media boolean not null,
        reject_reports boolean not null,
        verdict text not null check (verdict in ('add', 'change', 'covered', 'skip')),
        -- Why the row is skipped.
        fault text,
        -- Pairs of a local user and a person of the pod with a relation.
        contacts integer not null default 0,
        chosen boolean not null,
        step text not null default 'planned' check (step in ('planned', 'applied', 'skipped', 'undone', 'kept')),
        -- The rule before the import; null: there was none.
        rule_before jsonb
      );
      create index pod_rule_import_rows_import_id on pod_rule_import_rows (import_id, id);
      create index pod_rule_import_rows_step on pod_rule_import_rows (import_id, step, id) where chosen;
    `)
  },

  async down(db) {
    await db.raw('drop table pod_rule_import_rows, pod_rule_imports, operations')
  },
}
