import type { Migration } from './migration.js'

export const importedConversations: Migration = {
  async up(db) {
    await db.raw(`
      -- Network IDs of all participants of a conversation that comes from an archive: only its owner sees it here.
      alter table conversations add column imported_participants text[]
    `)
  },

  async down(db) {
    await db.raw('alter table conversations drop column imported_participants')
  },
}
