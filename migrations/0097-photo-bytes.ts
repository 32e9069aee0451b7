import type { Migration } from './migration.js'

/** Disk space of all sizes of a photo; unknown for photos that were uploaded before. */
export const photoBytes: Migration = {
  async up(db) {
    await db.raw('alter table photos add column bytes bigint not null default 0 check (bytes >= 0)')
  },
  async down(db) {
    await db.raw('alter table photos drop column bytes')
  },
}
