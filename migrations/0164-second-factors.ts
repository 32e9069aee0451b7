import { type Migration, now } from './migration.js'

/** Second factors: one-time codes of an authenticator app, recovery codes, and passkeys. */
export const secondFactors: Migration = {
  async up(db) {
    await db.raw(`
      -- The user id of passkeys; made with the first one.
      alter table users add column webauthn_id bytea;

      alter table user_secrets
        -- Sealed for this user only. The factor is on once the secret is confirmed.
        add column sealed_totp_secret bytea,
        add column totp_confirmed_at timestamptz(3),
        -- The step of the last accepted code: a code is accepted once.
        add column totp_last_step bigint;

      create table recovery_codes (
        user_id bigint not null references users on delete cascade,
        code_hash bytea not null,
        used_at timestamptz(3),
        primary key (user_id, code_hash)
      );

      create table passkeys (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        credential_id text collate "C" not null unique,
        public_key bytea not null,
        counter bigint not null,
        transports text[] not null,
        backed_up boolean not null,
        name text not null,
        created_at timestamptz(3) not null default ${now},
        last_used_at timestamptz(3)
      );
      create index passkeys_user_id on passkeys (user_id, id);

      -- The challenges that browsers have to sign, each for one use.
      create table passkey_challenges (
        challenge_hash bytea primary key,
        purpose text collate "C" not null check (purpose in ('sign_in', 'confirm', 'add')),
        browser_hash bytea not null,
        expires_at timestamptz(3) not null
      );
      create index passkey_challenges_expires_at on passkey_challenges (expires_at);

      -- Sign-ins whose password was right and whose second factor is missing.
      create table second_steps (
        id_hash bytea primary key,
        user_id bigint not null references users on delete cascade,
        -- The authorization request that the sign-in continues; null: none.
        request_uid text collate "C",
        return_to text,
        tries smallint not null default 0,
        expires_at timestamptz(3) not null
      );
      create index second_steps_user_id on second_steps (user_id);
      create index second_steps_expires_at on second_steps (expires_at);

      create table wrong_codes (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        at timestamptz(3) not null
      );
      create index wrong_codes_user_id on wrong_codes (user_id, at);
    `)
  },
  async down(db) {
    await db.raw(`
      drop table wrong_codes, second_steps, passkey_challenges, passkeys, recovery_codes;
      alter table user_secrets
        drop column sealed_totp_secret, drop column totp_confirmed_at, drop column totp_last_step;
      alter table users drop column webauthn_id;
    `)
  },
}
