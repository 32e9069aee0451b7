import type { Migration } from './migration.js'

const TABLES = [
  ...['outbox', 'waiting', 'outbound_messages', 'quarantine'],
  ...['posts', 'comments', 'likes', 'poll_participations'],
]

/** The id of the request with which a message was received, or a user caused a change. Null: stored before, or caused by the pod. */
export const traces: Migration = {
  async up(db) {
    await db.raw(TABLES.map((table) => `alter table ${table} add column trace_id uuid`).join('; '))
  },

  async down(db) {
    await db.raw(TABLES.map((table) => `alter table ${table} drop column trace_id`).join('; '))
  },
}
