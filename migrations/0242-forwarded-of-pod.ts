import { createIndexConcurrently, type Migration } from './migration.js'

/** An index for the number of comments, likes and votes that were forwarded in the last day for the authors of one pod. */
export const forwardedOfPod: Migration = {
  config: { transaction: false },

  async up(db) {
    await createIndexConcurrently(db, 'forwarded_relayables_pod', 'on forwarded_relayables (pod_id, forwarded_at)')
  },

  async down(db) {
    await db.raw('drop index if exists forwarded_relayables_pod')
  },
}
