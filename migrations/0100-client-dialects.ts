import type { Migration } from './migration.js'

/** The dialect of the API for a client. Null: that of the setting CLIENT_API_DIALECT. */
export const clientDialects: Migration = {
  async up(db) {
    await db.raw(`alter table clients add column api_dialect text check (api_dialect in ('standard', 'diaspora'))`)
  },
  async down(db) {
    await db.raw('alter table clients drop column api_dialect')
  },
}
