import type { Migration } from './migration.js'

/** What the sizes of a photo take on the disk of this pod; of photos that were uploaded before, it is not known. */
export const photoBytes: Migration = {
  async up(db) {
    await db.raw('alter table photos add column bytes bigint not null default 0 check (bytes >= 0)')
  },
  async down(db) {
    await db.raw('alter table photos drop column bytes')
  },
}
