import { type Migration, now } from './migration.js'

/** E-mail addresses of accounts, tokens in mails, mails with their attempts, and the state of the mail server. */
export const accountMail: Migration = {
  async up(db) {
    await db.raw(`
      alter table users
        add column email_confirmed_at timestamptz(3),
        -- The address that replaces the e-mail once its mailbox is confirmed.
        add column unconfirmed_email text,
        -- False: no notification mails. Mails about the account are sent all the same.
        add column mail_enabled boolean not null default true,
        add column digest_hour smallint not null default 8 check (digest_hour between 0 and 23),
        -- The local date and the end of the last digest.
        add column digest_on date,
        add column digest_at timestamptz(3),
        add column mail_state text collate "C" not null default 'ok'
          check (mail_state in ('ok', 'bouncing', 'suppressed'));

      -- Only differences from the defaults.
      create table mail_preferences (
        user_id bigint not null references users on delete cascade,
        kind text collate "C" not null,
        delivery text collate "C" not null check (delivery in ('immediate', 'daily', 'never')),
        primary key (user_id, kind)
      );

      -- A newer token of a purpose replaces the older one.
      create table account_tokens (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        purpose text collate "C" not null,
        token_hash bytea not null unique check (length(token_hash) = 32),
        -- The address that the token confirms or restores.
        email text,
        expires_at timestamptz(3) not null,
        created_at timestamptz(3) not null default ${now},
        unique (user_id, purpose)
      );
      create index account_tokens_expires_at on account_tokens (expires_at);

      -- Mails that were decided: their kind and times, kept for 30 days. The Message-ID has the id.
      create table mails (
        id bigint generated always as identity primary key,
        user_id bigint references users on delete cascade,
        -- MAC of the mailbox, for limits.
        mailbox bytea,
        kind text collate "C" not null,
        attempts smallint not null default 0,
        created_at timestamptz(3) not null default ${now},
        sent_at timestamptz(3)
      );
      create index mails_user_id on mails (user_id, created_at);
      create index mails_mailbox on mails (mailbox, created_at) where mailbox is not null;
      create index mails_created_at on mails (created_at);

      -- Faults of a mailbox that are reported as permanent, but may be temporary.
      create table mail_faults (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        at timestamptz(3) not null default ${now}
      );
      create index mail_faults_user_id on mail_faults (user_id, at);

      -- One row: whether the mail server refuses this pod, and the mails of the current minute.
      create table mail_transport (
        id smallint primary key default 1 check (id = 1),
        failing_since timestamptz(3),
        fault text collate "C",
        code integer,
        probe_at timestamptz(3),
        minute timestamptz(3) not null default ${now},
        sent integer not null default 0
      );
      insert into mail_transport default values;
    `)
  },

  async down(db) {
    await db.raw(`
      drop table mail_transport, mail_faults, mails, account_tokens, mail_preferences;
      alter table users
        drop column email_confirmed_at, drop column unconfirmed_email, drop column mail_enabled,
        drop column digest_hour, drop column digest_on, drop column digest_at, drop column mail_state;
    `)
  },
}
