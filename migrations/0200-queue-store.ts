import type { Migration } from './migration.js'

export const queueStore: Migration = {
  async up(db) {
    await db.raw(`
      -- Where the queue of the pod is, as the last start has found it; one row. The address of Redis is sealed, because it may hold a
      -- password; null: the queue is in this database.
      create table queue_store (
        id boolean primary key default true check (id),
        redis_url bytea
      )
    `)
  },

  async down(db) {
    await db.raw('drop table queue_store')
  },
}
