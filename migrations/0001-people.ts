import { type Migration, now } from './migration.js'

export const people: Migration = {
  async up(db) {
    await db.raw(`
      -- Finds names by a part of them.
      create extension if not exists pg_trgm;

      create table pods (
        id bigint generated always as identity primary key,
        host text collate "C" not null check (host = lower(host)),
        -- 80 and 443 are one port; it is written 443.
        port integer not null default 443 check (port between 1 and 65535 and port <> 80),
        ssl boolean not null default false,
        status text not null default 'unchecked' check (status in (
          'unchecked', 'no_errors', 'dns_failed', 'net_failed', 'ssl_failed', 'http_failed', 'version_failed', 'unknown_error'
        )),
        last_error text,
        failures integer not null default 0 check (failures >= 0),
        next_try_at timestamptz(3),
        offline_since timestamptz(3),
        last_success_at timestamptz(3),
        checked_at timestamptz(3),
        check_wanted boolean not null default false,
        blocked_at timestamptz(3),
        skipped_deliveries bigint not null default 0,
        created_at timestamptz(3) not null default ${now},
        unique (host, port)
      );
      create index pods_next_try_at on pods (next_try_at);

      create table people (
        id bigint generated always as identity primary key,
        guid text collate "C" not null unique check (length(guid) between 16 and 255),
        address text collate "C" not null unique check (address = lower(address) and length(address) <= 255),
        -- Null: a local person.
        pod_id bigint references pods,
        public_key text not null,
        -- Copied from the profile, so that a list of people reads one table.
        name text not null default '',
        avatar_url text,
        refreshed_at timestamptz(3),
        stream_fetched_at timestamptz(3),
        closed_at timestamptz(3),
        created_at timestamptz(3) not null default ${now}
      );
      create index people_pod_id on people (pod_id);
      create index people_name on people using gin (name gin_trgm_ops);

      create table profiles (
        person_id bigint primary key references people on delete cascade,
        first_name text,
        last_name text,
        image_url text,
        image_url_medium text,
        image_url_small text,
        bio text not null default '',
        location text not null default '',
        gender text,
        -- No date: year 0000 is a valid birthday on the wire, and PostgreSQL has no such year.
        birthday text collate "C" check (birthday ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
        searchable boolean not null default true,
        public_details boolean not null default false,
        nsfw boolean not null default false,
        tags text[] not null default '{}',
        edited_at timestamptz(3),
        accepted_at timestamptz(3),
        updated_at timestamptz(3) not null default ${now}
      );
      create index profiles_tags on profiles using gin (tags);
      create index profiles_day_of_birth on profiles (substr(birthday, 6)) where birthday is not null;

      create table account_migrations (
        old_person_id bigint primary key references people,
        new_person_id bigint not null references people check (new_person_id <> old_person_id),
        signature text not null,
        remote_photo_path text,
        sealed_old_private_key bytea,
        created_at timestamptz(3) not null default ${now}
      );
      create index account_migrations_new_person_id on account_migrations (new_person_id);

      create table users (
        id bigint generated always as identity primary key,
        person_id bigint not null unique references people,
        username text collate "C" not null unique check (username = lower(username)),
        email text,
        role text check (role in ('admin', 'moderator')),
        language text not null default 'en',
        settings jsonb not null default '{}' check (jsonb_typeof(settings) = 'object'),
        last_sign_in_at timestamptz(3),
        locked_at timestamptz(3),
        closed_at timestamptz(3),
        created_at timestamptz(3) not null default ${now}
      );
      create unique index users_email on users (lower(email));
      create index users_role on users (role, id) where role is not null;

      -- A table of its own, so that reading a user never reads these.
      create table user_secrets (
        user_id bigint primary key references users on delete cascade,
        password_hash text,
        sealed_private_key bytea not null
      );

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
    `)
  },

  /** The extension stays: it may have been there before, and others may use it. */
  async down(db) {
    await db.raw(`drop table invitations, user_secrets, users, account_migrations, profiles, people, pods`)
  },
}
