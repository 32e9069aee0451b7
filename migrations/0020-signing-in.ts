import { type Migration, now } from './migration.js'

export const signingIn: Migration = {
  async up(db) {
    await db.raw(`
      -- The payload contains these columns.
      alter table authorization_codes drop column redirect_uri, drop column nonce, drop column code_challenge;

      -- This column was never written.
      drop table invitations;
      create table invitations (
        id bigint generated always as identity primary key,
        code_hash bytea not null unique check (length(code_hash) = 32),
        -- A note of the operator.
        note text,
        expires_at timestamptz(3) not null,
        used_at timestamptz(3),
        user_id bigint references users on delete set null,
        created_at timestamptz(3) not null default ${now}
      );
      create index invitations_user_id on invitations (user_id) where user_id is not null;
    `)
  },

  async down(db) {
    await db.raw(`
      drop table invitations;
      create table invitations (
        id bigint generated always as identity primary key,
        code text collate "C" not null unique,
        inviter_id bigint references users on delete cascade,
        email text,
        uses_left integer not null default 1 check (uses_left >= 0),
        expires_at timestamptz(3),
        created_at timestamptz(3) not null default ${now}
      );
      create index invitations_inviter_id on invitations (inviter_id);
      alter table authorization_codes add column redirect_uri text, add column nonce text, add column code_challenge text;
    `)
  },
}
