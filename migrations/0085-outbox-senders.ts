import type { Migration } from './migration.js'

/** Entities of one local person are dispatched in the order of writing. */
export const outboxSenders: Migration = {
  async up(db) {
    await db.raw(`
      -- The local author of the entity to dispatch.
      alter table outbox add column sender_id bigint;
      create index outbox_of_sender on outbox (sender_id, id) where sender_id is not null;
    `)
  },
  async down(db) {
    await db.raw(`
      drop index outbox_of_sender;
      alter table outbox drop column sender_id;
    `)
  },
}
