import type { Migration } from './migration.js'

/**
 * Counting on a post writes its row again. With room for it on the same page none of the indexes is touched; nearly all that is said
 * under a post is said while it is new, so pages that are full already may stay as they are.
 */
export const roomBesidePosts: Migration = {
  async up(db) {
    await db.raw('alter table posts set (fillfactor = 70)')
  },

  async down(db) {
    await db.raw('alter table posts set (fillfactor = 85)')
  },
}
