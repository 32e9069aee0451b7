import type { Migration } from './migration.js'

/**
 * The scopes to which an access token is restricted, as far as its authorization allows them. Null: it may do all that the authorization
 * allows.
 */
export const narrowedTokens: Migration = {
  async up(db) {
    await db.raw('alter table access_tokens add column scopes text[]')
  },
  async down(db) {
    await db.raw('alter table access_tokens drop column scopes')
  },
}
