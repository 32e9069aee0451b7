import type { Migration } from './migration.js'

/**
 * A changed counter writes the row of a post again. With free space on the same page no index is written. Most comments arrive soon
 * after the post, so existing full pages may stay as they are.
 */
export const roomBesidePosts: Migration = {
  async up(db) {
    await db.raw('alter table posts set (fillfactor = 70)')
  },

  async down(db) {
    await db.raw('alter table posts set (fillfactor = 85)')
  },
}
