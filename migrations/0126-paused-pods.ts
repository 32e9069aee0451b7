import type { Migration } from './migration.js'

/** Admins pause deliveries and fetches. */
export const pausedPods: Migration = {
  async up(db) {
    await db.raw('alter table pods add column paused_until timestamptz(3)')
  },

  async down(db) {
    await db.raw('alter table pods drop column paused_until')
  },
}
