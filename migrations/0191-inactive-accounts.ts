import type { Migration } from './migration.js'

/** Accounts that nobody uses are closed after a warning. */
export const inactiveAccounts: Migration = {
  async up(db) {
    await db.raw(`
      alter table users
        -- The last use by a browser or an application, written at most once a day; null: none since this column exists.
        add column active_at timestamptz(3),
        -- When the owner was warned that the account will be closed because nobody uses it.
        add column inactive_warned_at timestamptz(3),
        drop constraint users_closing_by_check,
        add constraint users_closing_by_check check (closing_by in ('owner', 'moderator', 'inactivity')) not valid;
      alter table users validate constraint users_closing_by_check;
    `)
  },

  async down(db) {
    await db.raw(`
      update users set closing_by = 'owner' where closing_by = 'inactivity';
      alter table users
        drop constraint users_closing_by_check,
        add constraint users_closing_by_check check (closing_by in ('owner', 'moderator')),
        drop column inactive_warned_at,
        drop column active_at
    `)
  },
}
