import type { Migration } from './migration.js'

/** Photos of accounts that have moved away, whose posts were removed from this pod by their age: their old addresses lead on. */
export const prunedMovedPhotos: Migration = {
  async up(db) {
    await db.raw(`
      create table pruned_moved_photos (
        -- The file that was on this pod.
        name text collate "C" primary key,
        author_id bigint not null references people on delete cascade,
        -- The place of the photo now.
        remote_path text not null,
        new_name text not null
      );
      create index pruned_moved_photos_author_id on pruned_moved_photos (author_id)
    `)
  },

  async down(db) {
    await db.raw('drop table pruned_moved_photos')
  },
}
