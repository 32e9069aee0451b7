import { type Migration, now } from './migration.js'

/** The state of a take-over of a diaspora* pod, and what its accounts and clients need. */
export const takeOver: Migration = {
  async up(db) {
    await db.raw(`
      create table take_over (
        id smallint primary key default 1 check (id = 1),
        state text collate "C" not null check (state in ('copying', 'built', 'open', 'finished')),
        step text collate "C",
        release text collate "C" not null,
        sealed_pepper bytea,
        report jsonb not null default '{}',
        step_started_at timestamptz(3),
        created_at timestamptz(3) not null default ${now},
        changed_at timestamptz(3) not null default ${now}
      );

      -- The hash of a recovery code of diaspora* is the text of a bcrypt hash.
      alter table recovery_codes add column bcrypt boolean not null default false;

      alter table people add column spotlight boolean not null default false;

      -- diaspora* gave one subject to several sectors.
      alter table pairwise_subjects drop constraint pairwise_subjects_subject_key;

      -- diaspora* has a signature only if the old person was local.
      alter table account_migrations alter column signature drop not null;
    `)
  },

  async down(db) {
    await db.raw(`
      drop schema if exists take_over cascade;
      delete from account_migrations where signature is null;
      alter table account_migrations alter column signature set not null;
      delete from pairwise_subjects as one using pairwise_subjects as other
        where one.subject = other.subject and (one.user_id, one.sector) > (other.user_id, other.sector);
      alter table pairwise_subjects add constraint pairwise_subjects_subject_key unique (subject);
      alter table people drop column spotlight;
      delete from recovery_codes where bcrypt;
      alter table recovery_codes drop column bcrypt;
      drop table take_over;
    `)
  },
}
