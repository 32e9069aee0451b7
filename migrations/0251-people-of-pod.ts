import { createIndexConcurrently, type Migration } from './migration.js'

/** The people of a pod in the order of their ids: a rule for pods restricts them in chunks. */
export const peopleOfPod: Migration = {
  config: { transaction: false },

  async up(db) {
    await createIndexConcurrently(db, 'people_of_pod', 'on people (pod_id, id)')
    await db.raw('drop index if exists people_pod_id')
  },

  async down(db) {
    await createIndexConcurrently(db, 'people_pod_id', 'on people (pod_id)')
    await db.raw('drop index if exists people_of_pod')
  },
}
