import type { Migration } from './migration.js'

/** The files of the store of pictures, counted once a day by a worker. */
export const pictureCounts: Migration = {
  async up(db) {
    await db.raw(`
      create table picture_counts (
        -- The last complete count, and one that continues.
        state text primary key check (state in ('complete', 'running')),
        -- Where a running count continues: the last name that it has read.
        after text collate "C" not null,
        files bigint not null,
        bytes bigint not null,
        orphans bigint not null,
        orphan_bytes bigint not null,
        counted_at timestamptz(3) not null
      )
    `)
  },

  async down(db) {
    await db.raw('drop table picture_counts')
  },
}
