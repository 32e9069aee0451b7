import { type Migration, now } from './migration.js'

/** Which notifications and conversations have had their mail. */
export const noticeMails: Migration = {
  async up(db) {
    await db.raw(`
      create table notice_mails (
        notification_id bigint primary key references notifications on delete cascade,
        at timestamptz(3) not null default ${now}
      );

      -- The newest message that a mail to this user was about; read conversations get another one.
      create table conversation_mails (
        conversation_id bigint not null references conversations on delete cascade,
        user_id bigint not null references users on delete cascade,
        message_id bigint not null,
        primary key (conversation_id, user_id)
      );
      create index conversation_mails_user_id on conversation_mails (user_id);
    `)
  },

  async down(db) {
    await db.raw('drop table conversation_mails, notice_mails')
  },
}
