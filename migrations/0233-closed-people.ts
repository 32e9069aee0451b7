import { createIndexConcurrently, type Migration } from './migration.js'

/** An index for the list of people by state. */
const INDEX = 'people_closed'

export const closedPeople: Migration = {
  config: { transaction: false },

  async up(db) {
    await createIndexConcurrently(db, INDEX, 'on people (id) where closed_at is not null')
  },

  async down(db) {
    await db.raw('drop index if exists ??', [INDEX])
  },
}
