import type { Migration } from './migration.js'

/** Each batch of received messages looks for blocks of the last minute. */
export const recentBlocks: Migration = {
  async up(db) {
    await db.raw(`
      create index pods_blocked_at on pods (blocked_at) where blocked_at is not null;
      create index pod_rules_blocking on pod_rules (updated_at) where state = 'blocked';
    `)
  },

  async down(db) {
    await db.raw('drop index pod_rules_blocking, pods_blocked_at')
  },
}
