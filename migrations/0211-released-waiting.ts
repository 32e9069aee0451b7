import type { Migration } from './migration.js'

export const releasedWaiting: Migration = {
  async up(db) {
    await db.raw(`
      alter table waiting
        -- The row of a message that is replayed from the quarantine; it may be deleted meanwhile.
        add column quarantine_id bigint,
        -- Filters do not apply to the message.
        add column is_released boolean not null default false
    `)
  },

  async down(db) {
    await db.raw('alter table waiting drop column quarantine_id, drop column is_released')
  },
}
