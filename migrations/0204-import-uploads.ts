import type { Migration } from './migration.js'

export const importUploads: Migration = {
  async up(db) {
    await db.raw(`
      -- Archives that people upload on the page, until their files are deleted. The files are encrypted.
      create table import_uploads (
        id bigint generated always as identity primary key,
        -- The import gets the same uid.
        uid text collate "C" not null unique,
        user_id bigint not null references users on delete cascade,
        state text not null
          check (state in ('uploading', 'uploaded', 'checking', 'checked', 'failed', 'started', 'expired')),
        -- Bytes that have arrived of the archive and of the zip of photos.
        archive_bytes bigint not null default 0,
        photo_bytes bigint not null default 0,
        -- Attempts of the check, and when the next one is due.
        attempts smallint not null default 0,
        check_at timestamptz(3),
        alive_at timestamptz(3),
        checked_at timestamptz(3),
        -- Results of the check: what the import needs of the archive, and the report.
        facts jsonb,
        report jsonb,
        sealed_key bytea,
        error text,
        created_at timestamptz(3) not null
      );
      create index import_uploads_of_user on import_uploads (user_id, id);
      create unique index import_uploads_open on import_uploads (user_id)
        where state in ('uploading', 'uploaded', 'checking', 'checked');
      create index import_uploads_kept on import_uploads (created_at) where state <> 'expired';

      -- What an import has changed, so that it can be cancelled before the move.
      create table import_changes (
        id bigint generated always as identity primary key,
        import_id bigint not null references imports on delete cascade,
        change jsonb not null
      );
      create index import_changes_of_import on import_changes (import_id, id);
    `)
  },

  async down(db) {
    await db.raw('drop table import_changes, import_uploads')
  },
}
