import { type Migration, now } from './migration.js'

/** Messages are listed in the order of arrival; their own time is by the clock of another pod. */
export const arrivalOfMessages: Migration = {
  async up(db) {
    await db.raw(`
      alter table messages add column arrived_at timestamptz(3) not null default ${now};
      update messages set arrived_at = created_at;
      drop index messages_in_conversation;
      create index messages_in_conversation on messages (conversation_id, arrived_at, id);
    `)
  },
  async down(db) {
    await db.raw(`
      drop index messages_in_conversation;
      create index messages_in_conversation on messages (conversation_id, created_at, id);
      alter table messages drop column arrived_at;
    `)
  },
}
