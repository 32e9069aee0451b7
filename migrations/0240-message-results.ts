import { type Migration, now } from './migration.js'

/**
 * The pods that have a message about a local post, and those that it was not stored for. Deliveries are deleted when they have arrived.
 * Without a foreign key: its lock on the message could end in a deadlock with a retraction, which deletes the message and its deliveries.
 */
export const messageResults: Migration = {
  async up(db) {
    await db.raw(`
      create table message_results (
        id bigint generated always as identity primary key,
        message_id bigint not null,
        outcome text not null check (outcome in ('arrived', 'asleep', 'blocked')),
        pod_ids bigint[] not null,
        at timestamptz(3) not null default ${now}
      );
      create index message_results_message on message_results (message_id);
      create index message_results_at on message_results (at);
    `)
  },

  async down(db) {
    await db.raw('drop table message_results')
  },
}
