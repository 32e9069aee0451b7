import type { Migration } from './migration.js'

export const recordedBackups: Migration = {
  async up(db) {
    await db.raw(`
      alter table backup_runs
        -- The program that has made the backup; null: this one.
        add column tool text,
        -- When somebody has restored or checked it. Of its own backups the repository knows it.
        add column verified_at timestamptz(3)
    `)
  },

  async down(db) {
    await db.raw('alter table backup_runs drop column tool, drop column verified_at')
  },
}
