import { type Migration, now } from './migration.js'

/**
 * Waiting messages have the columns that their limits count: the host that the envelope names as its sender's, the network address that
 * posted it, whether a signature was verified, and the size. `signer_lookups` are the unknown signers that are still to be
 * looked up; one job for each host works through them.
 */
export const unprovenSenders: Migration = {
  async up(db) {
    await db.raw(`
      alter table waiting
        add column sender_host text collate "C",
        add column source text collate "C",
        add column signed boolean not null default true,
        add column bytes integer not null default 0;
      update waiting set bytes = octet_length(payload);
      -- A limit is checked by host, the newest first. The sizes are in the index, so that no payload is read.
      create index waiting_of_sender on waiting (sender_host, signed, id desc) include (bytes, source);
      create index waiting_unsigned on waiting (id) include (bytes) where not signed;

      create table signer_lookups (
        address text collate "C" primary key,
        host text collate "C" not null,
        -- The network address of the first message that named this signer.
        source text collate "C",
        -- Look-ups that have failed.
        tries smallint not null default 0,
        next_try_at timestamptz(3) not null default ${now},
        created_at timestamptz(3) not null default ${now}
      ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
      create index signer_lookups_host on signer_lookups (host, next_try_at);
      create index signer_lookups_next_try_at on signer_lookups (next_try_at);

      create index outbox_failed_at on outbox (failed_at desc, id desc) where failed_at is not null;
    `)
  },

  async down(db) {
    await db.raw(`
      drop index outbox_failed_at;
      drop table signer_lookups;
      drop index waiting_of_sender, waiting_unsigned;
      alter table waiting drop column sender_host, drop column source, drop column signed, drop column bytes
    `)
  },
}
