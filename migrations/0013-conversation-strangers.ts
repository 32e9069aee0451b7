import { type Migration, now } from './migration.js'

export const conversationStrangers: Migration = {
  async up(db) {
    await db.raw(`
      -- Participants of a conversation that are still unknown to this pod. After their discovery they become participants.
      create table conversation_strangers (
        conversation_id bigint not null references conversations on delete cascade,
        address text collate "C" not null check (address = lower(address) and length(address) <= 255),
        created_at timestamptz(3) not null default ${now},
        primary key (conversation_id, address)
      );
      create index conversation_strangers_address on conversation_strangers (address);
    `)
  },

  async down(db) {
    await db.raw(`drop table conversation_strangers`)
  },
}
