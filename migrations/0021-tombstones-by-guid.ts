import type { Migration } from './migration.js'

/** Every search for tombstones has a guid, but not always a type, so the index begins with the guid. */
export const tombstonesByGuid: Migration = {
  async up(db) {
    await db.raw(`
      alter table tombstones
        drop constraint tombstones_pkey,
        add primary key (guid, target_type, deleted_by_id)`)
  },
  async down(db) {
    await db.raw(`
      alter table tombstones
        drop constraint tombstones_pkey,
        add primary key (target_type, guid, deleted_by_id)`)
  },
}
