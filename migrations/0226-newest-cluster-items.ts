import { createIndexConcurrently, type Migration } from './migration.js'

/** The newest items of a cluster, which may have 20 000, in the order of its page. */
export const newestClusterItems: Migration = {
  config: { transaction: false },

  async up(db) {
    await createIndexConcurrently(
      db,
      'cluster_items_newest',
      'on cluster_items (cluster_id, at desc, type, content_id desc)',
    )
  },

  async down(db) {
    await db.raw('drop index if exists cluster_items_newest')
  },
}
