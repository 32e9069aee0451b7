import { createIndexConcurrently, type Migration } from './migration.js'

/** Indexes for the prune of messages by age: messages to delete or to empty after a day, and emptied messages, which are deleted later. */
const INDEXES = {
  outbound_messages_full: `on outbound_messages (created_at) where record <> 'post' or entity <> ''`,
  outbound_messages_emptied: `on outbound_messages (created_at) where record = 'post' and entity = ''`,
} as const

export const prunedMessages: Migration = {
  config: { transaction: false },

  async up(db) {
    for (const [name, definition] of Object.entries(INDEXES)) await createIndexConcurrently(db, name, definition)
  },

  async down(db) {
    for (const name of Object.keys(INDEXES)) await db.raw('drop index if exists ??', [name])
  },
}
