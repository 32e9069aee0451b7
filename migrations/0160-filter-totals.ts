import type { Migration } from './migration.js'

/** Hits of all filters of a kind ever: a counter of the metrics must not fall when old days or filters are deleted. */
export const filterTotals: Migration = {
  async up(db) {
    await db.raw(`
      create table filter_totals (
        kind text primary key,
        hits bigint not null
      );
      insert into filter_totals (kind, hits)
      select kind, sum(hits) from filter_days join filters on filters.id = filter_id group by kind
    `)
  },

  async down(db) {
    await db.raw('drop table filter_totals')
  },
}
