import { type Migration, now } from './migration.js'

/** Storage options for rows that exist for seconds: free space for updates in each page, and an early vacuum. */
const SHORT_LIVED_SQL = `with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02)`

export const work: Migration = {
  async up(db) {
    await db.raw(`
      create table outbox (
        id bigint generated always as identity primary key,
        queue text not null,
        name text not null,
        data jsonb not null default '{}',
        -- Only for a message that has waited: its body.
        payload text,
        accepted_at timestamptz(3),
        created_at timestamptz(3) not null default ${now},
        sweep_at timestamptz(3) not null default ${now} + interval '5 seconds',
        failed_at timestamptz(3)
      ) ${SHORT_LIVED_SQL};
      create index outbox_sweep_at on outbox (sweep_at) where failed_at is null;

      create table waiting (
        id bigint generated always as identity primary key,
        waits_for text collate "C" not null,
        name text not null,
        recipient_guid text collate "C",
        payload text not null,
        accepted_at timestamptz(3) not null,
        -- Hash of channel, recipient and payload, so that the same message waits once.
        digest bytea not null unique check (length(digest) = 32),
        times smallint not null default 1 check (times > 0),
        created_at timestamptz(3) not null default ${now},
        due_at timestamptz(3) not null default ${now} + interval '6 hours'
      ) ${SHORT_LIVED_SQL};
      create index waiting_waits_for on waiting (waits_for);
      create index waiting_due_at on waiting (due_at);

      create table outbound_messages (
        id bigint generated always as identity primary key,
        -- The type and guid of the record, and what is done with it: create, retract, …
        record text not null,
        guid text collate "C" not null,
        verb text not null,
        sender_id bigint not null references people,
        public boolean not null,
        entity text not null,
        -- Null until the first delivery, which signs it.
        envelope text,
        created_at timestamptz(3) not null default ${now}
      );
      -- Profiles and contacts are sent again after each change.
      create unique index outbound_messages_once on outbound_messages (record, guid, verb)
        where record not in ('profile', 'contact');
      create index outbound_messages_sender_id on outbound_messages (sender_id);

      create table deliveries (
        id bigint generated always as identity primary key,
        message_id bigint not null references outbound_messages on delete cascade,
        pod_id bigint not null references pods on delete cascade,
        -- Null: a public delivery, one for the whole pod.
        person_id bigint references people on delete cascade,
        state text not null default 'waiting' check (state in ('waiting', 'dead')),
        attempts smallint not null default 0 check (attempts >= 0),
        due_at timestamptz(3) not null default ${now},
        last_status smallint,
        last_fault text,
        -- The encrypted bytes after the first failed attempt. A retry sends the same bytes.
        encrypted_envelope text,
        died_at timestamptz(3),
        created_at timestamptz(3) not null default ${now},
        check ((state = 'dead') = (died_at is not null))
      ) ${SHORT_LIVED_SQL};
      create unique index deliveries_once on deliveries (message_id, pod_id, coalesce(person_id, 0));
      create index deliveries_pod_id on deliveries (pod_id, id);
      create index deliveries_person_id on deliveries (person_id) where person_id is not null;
      create index deliveries_due_at on deliveries (due_at) where state = 'waiting';
      create index deliveries_died_at on deliveries (died_at) where state = 'dead';

      -- The deleter is part of the key: an unauthorised retraction must not replace a valid one.
      create table tombstones (
        target_type text not null,
        guid text collate "C" not null,
        deleted_by_id bigint not null references people on delete cascade,
        created_at timestamptz(3) not null default ${now},
        primary key (target_type, guid, deleted_by_id)
      );
      create index tombstones_deleted_by_id on tombstones (deleted_by_id);
      create index tombstones_created_at on tombstones (created_at);

      create table periodic (
        name text primary key,
        last_run_at timestamptz(3) not null
      );
    `)
  },

  async down(db) {
    await db.raw(`drop table periodic, tombstones, deliveries, outbound_messages, waiting, outbox`)
  },
}
