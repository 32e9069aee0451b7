import type { Migration } from './migration.js'

/** Who marks all they write as not for everybody is asked for with each list of posts. They are few. */
export const peopleNotForEverybody: Migration = {
  async up(db) {
    await db.raw('create index profiles_nsfw on profiles (person_id) where nsfw')
  },

  async down(db) {
    await db.raw('drop index profiles_nsfw')
  },
}
