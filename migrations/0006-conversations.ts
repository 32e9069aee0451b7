import { type Migration, now } from './migration.js'

export const conversations: Migration = {
  async up(db) {
    await db.raw(`
      create table conversations (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        author_id bigint not null references people,
        subject text not null,
        created_at timestamptz(3) not null default ${now},
        updated_at timestamptz(3) not null default ${now}
      );
      create index conversations_author_id on conversations (author_id);

      create table messages (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        conversation_id bigint not null references conversations on delete cascade,
        author_id bigint not null references people,
        text text not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index messages_in_conversation on messages (conversation_id, created_at, id);
      create index messages_author_id on messages (author_id);

      create table conversation_visibilities (
        conversation_id bigint not null references conversations on delete cascade,
        person_id bigint not null references people on delete cascade,
        unread integer not null default 0 check (unread >= 0),
        -- Both copied from the conversation: sorting by a joined table costs three times as much.
        created_at timestamptz(3) not null,
        updated_at timestamptz(3) not null,
        primary key (conversation_id, person_id)
      );
      create index conversation_visibilities_newest
        on conversation_visibilities (person_id, created_at desc, conversation_id desc);
      create index conversation_visibilities_updated
        on conversation_visibilities (person_id, updated_at desc, conversation_id desc);
      create index conversation_visibilities_unread
        on conversation_visibilities (person_id, created_at desc, conversation_id desc) where unread > 0;
    `)
  },

  async down(db) {
    await db.raw(`drop table conversation_visibilities, messages, conversations`)
  },
}
