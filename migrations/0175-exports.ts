import type { Migration } from './migration.js'

export const exports: Migration = {
  async up(db) {
    await db.raw(`
      -- Archives and photos that people have requested. The files are in the store of pictures, never published.
      create table exports (
        id bigint generated always as identity primary key,
        uid text collate "C" not null unique,
        user_id bigint not null references users on delete cascade,
        kind text not null check (kind in ('archive', 'copy', 'photos')),
        state text not null default 'waiting' check (state in ('waiting', 'running', 'ready', 'failed', 'expired')),
        -- Deleted by its owner; the row still counts for the limit of the day.
        deleted boolean not null default false,
        attempts smallint not null default 0,
        -- The part that is being written, and the number of its written items.
        section text,
        done bigint not null default 0,
        -- The last heartbeat of the worker.
        alive_at timestamptz(3),
        bytes bigint,
        sha256 text collate "C",
        left_out integer not null default 0,
        error text,
        created_at timestamptz(3) not null,
        finished_at timestamptz(3),
        expires_at timestamptz(3)
      );
      create unique index exports_unfinished on exports (user_id, kind) where state in ('waiting', 'running') and not deleted;
      create index exports_of_user on exports (user_id, id);
      create index exports_expiring on exports (expires_at) where state = 'ready';
    `)
  },

  async down(db) {
    await db.raw('drop table exports')
  },
}
