import { type Migration, now } from './migration.js'

export const idempotency: Migration = {
  async up(db) {
    await db.raw(`
      -- Requests with an Idempotency-Key, which take effect once.
      create table idempotency_keys (
        authorization_id bigint not null references authorizations on delete cascade,
        key text collate "C" not null check (length(key) between 1 and 255),
        -- The request that runs with this key, or has answered.
        claim uuid not null default gen_random_uuid(),
        claimed_at timestamptz(3) not null default ${now},
        -- The request has taken effect. It is not run again, even if its response was lost.
        done boolean not null default false,
        -- Hash of method, path and body. Null, like the following columns, until the response is stored.
        fingerprint bytea check (length(fingerprint) = 32),
        status smallint,
        headers jsonb,
        body text,
        created_at timestamptz(3) not null default ${now},
        primary key (authorization_id, key),
        check ((status is null) = (fingerprint is null) and (status is null) = (headers is null))
      );
      create index idempotency_keys_created_at on idempotency_keys (created_at);
    `)
  },

  async down(db) {
    await db.raw(`drop table idempotency_keys`)
  },
}
