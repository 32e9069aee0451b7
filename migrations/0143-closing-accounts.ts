import type { Migration } from './migration.js'

/** Accounts are closed after a grace period. */
export const closingAccounts: Migration = {
  async up(db) {
    await db.raw(`
      alter table users
        -- The end of the grace period. Until then the account has no access, and nothing is deleted.
        add column close_at timestamptz(3),
        -- Only a moderator takes back what a moderator has begun.
        add column closing_by text check (closing_by in ('owner', 'moderator')),
        -- Comments and posts are retracted before the account deletion is sent.
        add column closing_retracts boolean not null default false,
        add constraint users_closing_check check ((close_at is null) = (closing_by is null)) not valid;
      alter table users validate constraint users_closing_check;
      create index users_close_at on users (close_at) where close_at is not null and closed_at is null;
    `)
  },

  async down(db) {
    await db.raw(`
      alter table users drop constraint users_closing_check, drop column closing_retracts, drop column closing_by, drop column close_at
    `)
  },
}
