import type { Migration } from './migration.js'

/** Each list of posts selects the people who mark all their posts as not safe for work. They are few. */
export const peopleNotForEverybody: Migration = {
  async up(db) {
    await db.raw('create index profiles_nsfw on profiles (person_id) where nsfw')
  },

  async down(db) {
    await db.raw('drop index profiles_nsfw')
  },
}
