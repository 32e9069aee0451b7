import { type Migration, now } from './migration.js'

export const clients: Migration = {
  async up(db) {
    await db.raw(`
      create table clients (
        id bigint generated always as identity primary key,
        client_id text collate "C" not null unique,
        -- Null: the client has no secret.
        secret_hash bytea,
        name text,
        redirect_uris text[] not null check (cardinality(redirect_uris) > 0),
        -- The other members of a registration. No statement searches in them.
        metadata jsonb not null default '{}' check (jsonb_typeof(metadata) = 'object'),
        created_at timestamptz(3) not null default ${now},
        updated_at timestamptz(3) not null default ${now}
      );
      create index clients_created_at on clients (created_at);

      -- Scopes are stored here and not in the tokens, so that a new consent also changes existing tokens.
      create table authorizations (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        -- Null: created by the operator. A user may have several.
        client_id bigint references clients on delete cascade,
        grant_id text collate "C" unique,
        scopes text[] not null,
        created_at timestamptz(3) not null default ${now},
        updated_at timestamptz(3) not null default ${now},
        unique (user_id, client_id)
      );
      create index authorizations_client_id on authorizations (client_id) where client_id is not null;

      create table access_tokens (
        id bigint generated always as identity primary key,
        authorization_id bigint not null references authorizations on delete cascade,
        token_hash bytea not null unique check (length(token_hash) = 32),
        payload jsonb,
        expires_at timestamptz(3),
        created_at timestamptz(3) not null default ${now}
      );
      create index access_tokens_authorization_id on access_tokens (authorization_id);
      create index access_tokens_expires_at on access_tokens (expires_at);

      create table refresh_tokens (
        id bigint generated always as identity primary key,
        authorization_id bigint not null references authorizations on delete cascade,
        token_hash bytea not null unique check (length(token_hash) = 32),
        payload jsonb,
        expires_at timestamptz(3),
        created_at timestamptz(3) not null default ${now}
      );
      create index refresh_tokens_authorization_id on refresh_tokens (authorization_id);

      create table authorization_codes (
        id bigint generated always as identity primary key,
        authorization_id bigint not null references authorizations on delete cascade,
        code_hash bytea not null unique check (length(code_hash) = 32),
        redirect_uri text,
        nonce text,
        code_challenge text,
        payload jsonb,
        expires_at timestamptz(3) not null,
        consumed_at timestamptz(3),
        created_at timestamptz(3) not null default ${now}
      );
      create index authorization_codes_authorization_id on authorization_codes (authorization_id);
      create index authorization_codes_expires_at on authorization_codes (expires_at);

      -- Other state of the authorization server: sessions, interactions, grants.
      create table oidc_records (
        model text not null,
        id_hash bytea not null check (length(id_hash) = 32),
        grant_id text collate "C",
        uid text collate "C",
        payload jsonb not null,
        consumed_at timestamptz(3),
        expires_at timestamptz(3),
        primary key (model, id_hash)
      );
      create index oidc_records_grant_id on oidc_records (grant_id) where grant_id is not null;
      create index oidc_records_uid on oidc_records (model, uid) where uid is not null;
      create index oidc_records_expires_at on oidc_records (expires_at);

      create table pairwise_subjects (
        user_id bigint not null references users on delete cascade,
        sector text not null,
        subject text collate "C" not null unique,
        primary key (user_id, sector)
      );

      create table signing_keys (
        kid text primary key,
        sealed_private_key bytea not null,
        public_jwk jsonb not null,
        created_at timestamptz(3) not null default ${now}
      );
    `)
  },

  async down(db) {
    await db.raw(`
      drop table signing_keys, pairwise_subjects, oidc_records, authorization_codes, refresh_tokens, access_tokens,
        authorizations, clients
    `)
  },
}
