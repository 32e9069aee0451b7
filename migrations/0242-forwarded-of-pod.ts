import { createIndexConcurrently, type Migration } from './migration.js'

/** For the number of comments, likes and votes that were forwarded lately for the authors of one pod. */
export const forwardedOfPod: Migration = {
  config: { transaction: false },

  async up(db) {
    await createIndexConcurrently(db, 'forwarded_relayables_pod', 'on forwarded_relayables (pod_id, forwarded_at)')
  },

  async down(db) {
    await db.raw('drop index if exists forwarded_relayables_pod')
  },
}
