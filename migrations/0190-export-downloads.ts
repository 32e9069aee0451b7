import type { Migration } from './migration.js'

export const exportDownloads: Migration = {
  async up(db) {
    await db.raw('alter table exports add column downloaded_at timestamptz(3)')
  },

  async down(db) {
    await db.raw('alter table exports drop column downloaded_at')
  },
}
