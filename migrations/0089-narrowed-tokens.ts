import type { Migration } from './migration.js'

/** Null: an access token may do what its authorization allows. Else only those of these scopes that the authorization allows. */
export const narrowedTokens: Migration = {
  async up(db) {
    await db.raw('alter table access_tokens add column scopes text[]')
  },
  async down(db) {
    await db.raw('alter table access_tokens drop column scopes')
  },
}
