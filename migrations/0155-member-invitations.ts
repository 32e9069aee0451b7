import { type Migration, now } from './migration.js'

/** Invitations by users, the approval of sign-ups that begins while no moderator is active, and pictures of cases. */
export const memberInvitations: Migration = {
  async up(db) {
    await db.raw(`
      -- The user who has made the invitation; null: a moderator, an admin or a command.
      alter table invitations add column inviter_id bigint references users on delete cascade;
      create index invitations_inviter_id on invitations (inviter_id, id) where inviter_id is not null;

      -- One row: since when sign-ups need a decision because no moderator was active, and when an admin has ended that.
      create table unattended_sign_ups (
        id boolean primary key default true check (id),
        since timestamptz(3),
        ended_at timestamptz(3)
      );

      -- Copies of reported pictures for moderators, for a day.
      create table case_pictures (
        photo_guid text collate "C" primary key,
        state text not null default 'wanted' check (state in ('wanted', 'ready', 'failed')),
        blurred bytea,
        clear bytea,
        requested_at timestamptz(3) not null default ${now},
        check ((state = 'ready') = (blurred is not null and clear is not null))
      );
      create index case_pictures_requested_at on case_pictures (requested_at);
    `)
  },

  async down(db) {
    await db.raw(`
      drop table case_pictures, unattended_sign_ups;
      alter table invitations drop column inviter_id;
    `)
  },
}
