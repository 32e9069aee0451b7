import type { Migration } from './migration.js'

/** For tokens of the operator, which have no client. Null: the dialect of the client, else that of the setting. */
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
