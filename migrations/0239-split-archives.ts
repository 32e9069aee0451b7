import type { Migration } from './migration.js'

/** The lists into which an uploaded archive is split count for the space of all uploads. */
export const splitArchives: Migration = {
  async up(db) {
    await db.raw('alter table upload_space add column split_bytes bigint not null default 0')
  },

  async down(db) {
    await db.raw('alter table upload_space drop column split_bytes')
  },
}
