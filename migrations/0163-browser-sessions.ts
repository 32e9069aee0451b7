import { type Migration, now } from './migration.js'

/** Browser sessions that their user can list and end, settings of users, and forms that wait for a proof of the password. */
export const browserSessions: Migration = {
  async up(db) {
    await db.raw(`
      alter table users
        add column time_zone text not null default 'UTC',
        add column default_post_public boolean not null default false;
      alter table aspects add column post_default boolean not null default false;
      -- When the client last got an access token.
      alter table authorizations add column last_used_at timestamptz(3);

      -- One row for a session of the authorization server, whose id changes at each sign-in while the uid stays.
      create table browser_sessions (
        uid text collate "C" primary key,
        user_id bigint not null references users on delete cascade,
        began_at timestamptz(3) not null default ${now},
        -- Written at most every five minutes.
        last_used_at timestamptz(3) not null,
        authenticated_at timestamptz(3) not null,
        acr text collate "C" not null,
        amr text[] not null,
        -- The /24 or /48 of the network address.
        network text collate "C" not null,
        browser text not null,
        wrong_proofs smallint not null default 0,
        wrong_proofs_since timestamptz(3)
      );
      create index browser_sessions_user_id on browser_sessions (user_id, last_used_at);

      -- The fields of a form, without secrets, while its user proves the password.
      create table kept_forms (
        id_hash bytea primary key,
        session_uid text collate "C" not null,
        path text collate "C" not null,
        fields jsonb not null,
        expires_at timestamptz(3) not null
      );
      create index kept_forms_expires_at on kept_forms (expires_at);
    `)
  },
  async down(db) {
    await db.raw(`
      drop table kept_forms, browser_sessions;
      alter table authorizations drop column last_used_at;
      alter table aspects drop column post_default;
      alter table users drop column time_zone, drop column default_post_public;
    `)
  },
}
