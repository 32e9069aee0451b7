import type { Migration } from './migration.js'

export const imports: Migration = {
  async up(db) {
    await db.raw(`
      -- Archives that people import. The archive is split into files, one for each list, until the import ends.
      create table imports (
        id bigint generated always as identity primary key,
        uid text collate "C" not null unique,
        user_id bigint not null references users on delete cascade,
        state text not null check (state in ('running', 'paused', 'done', 'failed', 'cancelled')),
        old_address text collate "C" not null,
        -- The state of the account in the archive: proven, unproven, closed, moved_here, local or same.
        identity text not null,
        -- What is imported besides contacts: settings, profile, and by a move also posts and interactions.
        options jsonb not null,
        -- Members of the archive that are no lists, without the key.
        header jsonb not null,
        -- The key of the old account, until the move is signed.
        sealed_key bytea,
        bytes bigint not null,
        sha256 text collate "C" not null,
        -- The list that is being imported, and the number of its imported lines. Both change in the transaction that stores the
        -- lines.
        phase text not null,
        lines integer not null default 0,
        -- Items by section and outcome.
        counts jsonb not null default '{}',
        error text,
        alive_at timestamptz(3),
        created_at timestamptz(3) not null,
        finished_at timestamptz(3)
      );
      create index imports_of_user on imports (user_id, id);
      create unique index imports_unfinished on imports (user_id) where state in ('running', 'paused');

      create table import_items (
        import_id bigint not null references imports on delete cascade,
        section text not null,
        position integer not null,
        -- A guid, a name or a network ID.
        ref text not null,
        outcome text not null check (outcome in ('imported', 'already_there', 'refused')),
        reason text,
        primary key (import_id, section, position, ref)
      );
      create index import_items_refused on import_items (import_id, reason) where outcome = 'refused';
    `)
  },

  async down(db) {
    await db.raw('drop table import_items, imports')
  },
}
