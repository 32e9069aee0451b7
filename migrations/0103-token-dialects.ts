import type { Migration } from './migration.js'

/** The dialect of a token of the operator, which has no client. Null: the dialect of the client, else that of the setting. */
export const tokenDialects: Migration = {
  async up(db) {
    await db.raw(
      `alter table authorizations add column api_dialect text check (api_dialect is null or (api_dialect in ('standard', 'diaspora') and client_id is null))`,
    )
  },
  async down(db) {
    await db.raw('alter table authorizations drop column api_dialect')
  },
}
