import type { Migration } from './migration.js'

/** An invitation is for one or many sign-ups, can be recalled, and is remembered by the accounts that have used it. */
export const invitationUses: Migration = {
  async up(db) {
    await db.raw(`
      alter table invitations
        add column uses integer not null default 1 check (uses between 1 and 100),
        add column used integer not null default 0,
        add column created_by text not null default 'command',
        add column recalled_at timestamptz(3),
        add constraint invitations_used check (used between 0 and uses);
      update invitations set used = 1 where used_at is not null;

      alter table users
        add column invitation_id bigint references invitations on delete set null,
        -- Null: made by a command.
        add column signed_up_at timestamptz(3);
      create index users_invitation_id on users (invitation_id) where invitation_id is not null;
      create index users_signed_up_at on users (signed_up_at) where signed_up_at is not null;
      update users set invitation_id = invitations.id from invitations where invitations.user_id = users.id;
    `)
  },

  async down(db) {
    await db.raw(`
      alter table users drop column signed_up_at, drop column invitation_id;
      alter table invitations
        drop constraint invitations_used,
        drop column recalled_at, drop column created_by, drop column used, drop column uses;
    `)
  },
}
