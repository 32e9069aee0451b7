import { type Migration, now } from './migration.js'

export const idempotency: Migration = {
  async up(db) {
    await db.raw(`
      -- What clients may ask a second time without doing it twice.
      create table idempotency_keys (
        authorization_id bigint not null references authorizations on delete cascade,
        key text collate "C" not null check (length(key) between 1 and 255),
        -- Whoever works on it at the moment, or has answered it.
        claim uuid not null default gen_random_uuid(),
        claimed_at timestamptz(3) not null default ${now},
        -- Something was done that lasts: nobody does it again, also if no answer ever comes.
        done boolean not null default false,
        -- Of method, path and body. Null, as all that follows, until it is answered.
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
