import type { Migration } from './migration.js'

/** Bytes of the photos that an import has fetched from the old pod, which may be as many as the photos of a zip. */
export const fetchedPhotos: Migration = {
  async up(db) {
    await db.raw('alter table imports add column fetched_bytes bigint not null default 0')
  },

  async down(db) {
    await db.raw('alter table imports drop column fetched_bytes')
  },
}
