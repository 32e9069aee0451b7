import type { Migration } from './migration.js'

export const announcedMigrations: Migration = {
  async up(db) {
    await db.raw(`
      -- Moves to accounts of this pod. Of an old account that this pod never knew there is only the address.
      alter table account_migrations
        drop constraint account_migrations_pkey,
        alter column old_person_id drop not null,
        add column id bigint generated always as identity primary key,
        add column old_address text collate "C" unique,
        -- The same message with the inner signature by the old key, for pods that verify that one.
        add column envelope_friendica text,
        -- Until this time pods that do not answer are tried again.
        add column announce_until timestamptz(3);
      create unique index account_migrations_old_person_id on account_migrations (old_person_id);
      update account_migrations set old_address = people.address from people where people.id = old_person_id;

      create table migration_announcements (
        migration_id bigint not null references account_migrations on delete cascade,
        pod_id bigint not null references pods on delete cascade,
        wave smallint not null check (wave in (1, 2)),
        due_at timestamptz(3) not null,
        attempts smallint not null default 0,
        delivered_at timestamptz(3),
        -- Set when the pod has refused, or when the time is over.
        given_up_at timestamptz(3),
        -- Null: not tried yet, or the pod did not answer.
        last_status integer,
        attempted_at timestamptz(3),
        primary key (migration_id, pod_id)
      );
      create index migration_announcements_due on migration_announcements (due_at)
        where delivered_at is null and given_up_at is null;
      create index migration_announcements_of_pod on migration_announcements (pod_id);
    `)
  },

  async down(db) {
    await db.raw(`
      drop table migration_announcements;
      delete from account_migrations where old_person_id is null;
      drop index account_migrations_old_person_id;
      alter table account_migrations
        drop column id, drop column old_address, drop column envelope_friendica, drop column announce_until,
        add primary key (old_person_id);
    `)
  },
}
