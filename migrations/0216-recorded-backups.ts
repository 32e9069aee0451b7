import type { Migration } from './migration.js'

export const recordedBackups: Migration = {
  async up(db) {
    await db.raw(`
      alter table backup_runs
        -- The program that has made the backup; null: this one.
        add column tool text,
        -- When the backup was restored or checked. For backups by this pod, the repository has this time.
        add column verified_at timestamptz(3)
    `)
  },

  async down(db) {
    await db.raw('alter table backup_runs drop column tool, drop column verified_at')
  },
}
