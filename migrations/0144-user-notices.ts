import { type Migration, now } from './migration.js'

/** What moderators tell local users, and the contacts that users lose by rules for pods. */
export const userNotices: Migration = {
  async up(db) {
    await db.raw(`
      create table user_notices (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        kind text not null check (kind in ('warning', 'content_hidden', 'content_removed', 'contacts_lost')),
        -- The text of a warning, or the host of lost contacts.
        text text not null,
        target_type text,
        target_guid text collate "C",
        action_id bigint references moderation_actions,
        created_at timestamptz(3) not null default ${now},
        confirmed_at timestamptz(3)
      );
      create index user_notices_of_user on user_notices (user_id, id);
      create index user_notices_unconfirmed on user_notices (user_id) where confirmed_at is null;
      create index user_notices_action_id on user_notices (action_id) where action_id is not null;
      create unique index user_notices_lost on user_notices (user_id, text) where kind = 'contacts_lost' and confirmed_at is null;

      create table lost_contacts (
        notice_id bigint not null references user_notices on delete cascade,
        address text collate "C" not null,
        name text not null,
        sharing boolean not null,
        receiving boolean not null,
        primary key (notice_id, address)
      );
      create index lost_contacts_address on lost_contacts (address);
    `)
  },

  async down(db) {
    await db.raw('drop table lost_contacts, user_notices')
  },
}
