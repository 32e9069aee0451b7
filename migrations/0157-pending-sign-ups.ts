import { type Migration, now } from './migration.js'

/** Sign-ups that wait for the confirmation of their mailbox, or for the decision of a moderator. */
export const pendingSignUps: Migration = {
  async up(db) {
    await db.raw(`
      create table pending_sign_ups (
        id bigint generated always as identity primary key,
        -- Null: rejected, and the name is free; the row stays until the mail about it is sent.
        username text collate "C" unique check (username = lower(username)),
        -- Not unique: a used address must not be revealed.
        email text,
        password_hash text,
        language text not null,
        invitation_id bigint references invitations on delete set null,
        reason text,
        -- The answer of a moderator to the applicant.
        answer text,
        needs_confirmation boolean not null,
        needs_approval boolean not null,
        token_hash bytea unique check (length(token_hash) = 32),
        confirmed_at timestamptz(3),
        -- Set by an approval and by a rejection.
        decided_at timestamptz(3),
        -- The authorization request of an application that the sign-up continues.
        request_uid text collate "C",
        -- The /24 or /48 of the network address.
        network text collate "C",
        -- Rules of operators that apply, by kind and id.
        rules text[] not null default '{}',
        mails_sent smallint not null default 0,
        mailed_at timestamptz(3),
        expires_at timestamptz(3) not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index pending_sign_ups_expires_at on pending_sign_ups (expires_at);
      create index pending_sign_ups_network on pending_sign_ups (network, created_at);
      create index pending_sign_ups_invitation_id on pending_sign_ups (invitation_id) where invitation_id is not null;

      -- Counts of a day by network, which remain when a pending row ends.
      create table sign_up_attempts (
        id bigint generated always as identity primary key,
        network text collate "C" not null,
        at timestamptz(3) not null default ${now}
      );
      create index sign_up_attempts_network on sign_up_attempts (network, at);

      alter table users add column sign_up_network text collate "C";
    `)
  },

  async down(db) {
    await db.raw(`
      alter table users drop column sign_up_network;
      drop table sign_up_attempts, pending_sign_ups;
    `)
  },
}
