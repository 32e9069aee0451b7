import type { Migration } from './migration.js'

/** Numbers of items, authors and pods of a cluster, so that lists need not count them. */
export const clusterCounts: Migration = {
  async up(db) {
    await db.raw(`
      alter table clusters
        add column item_count integer not null default 0,
        add column author_count integer not null default 0,
        add column pod_count integer not null default 0;
      update clusters set (item_count, author_count, pod_count) = (
        select coalesce(sum(items), 0), count(*), count(distinct coalesce(people.pod_id, 0))
        from (
          select author_id, count(*) as items from cluster_items where cluster_id = clusters.id group by author_id
        ) as authors join people on people.id = authors.author_id
      );
    `)
  },

  async down(db) {
    await db.raw('alter table clusters drop column item_count, drop column author_count, drop column pod_count')
  },
}
