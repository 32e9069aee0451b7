import type { Migration } from './migration.js'

export const pruneTotals: Migration = {
  async up(db) {
    await db.raw(`
      alter table prune_progress
        -- All rows that were removed.
        add column removed_rows bigint not null default 0,
        -- Rows older than the limit that the running removal has found: removed ones, and those that stay.
        add column found_rows bigint not null default 0,
        -- The number of such rows that the last finished removal has found.
        add column candidates bigint;
    `)
  },

  async down(db) {
    await db.raw('alter table prune_progress drop column removed_rows, drop column found_rows, drop column candidates')
  },
}
