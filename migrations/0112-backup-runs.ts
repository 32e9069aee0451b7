import { type Migration, now } from './migration.js'

export const backupRuns: Migration = {
  async up(db) {
    await db.raw(`
      -- Backups that this pod has started. Not part of a backup.
      create table backup_runs (
        id text collate "C" primary key,
        -- Host and process, for the message that refuses a second run.
        process text not null,
        started_at timestamptz(3) not null default ${now},
        ended_at timestamptz(3),
        -- Null: it is running, has succeeded, or was killed.
        fault text,
        bytes bigint,
        bytes_new bigint,
        row_count bigint
      );
      create index backup_runs_started_at on backup_runs (started_at);
    `)
  },

  async down(db) {
    await db.raw('drop table backup_runs')
  },
}
