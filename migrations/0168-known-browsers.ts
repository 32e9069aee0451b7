import type { Migration } from './migration.js'

/** The browsers in which a user has signed in, for a mail about a sign-in in another one. */
export const knownBrowsers: Migration = {
  async up(db) {
    await db.raw(`
      create table known_browsers (
        user_id bigint not null references users on delete cascade,
        -- Hash of the user and the cookie of the browser: rows of two users in one browser have different hashes.
        browser_hash bytea not null check (length(browser_hash) = 32),
        -- The last sign-in in this browser.
        seen_at timestamptz(3) not null,
        primary key (user_id, browser_hash)
      )
    `)
  },

  async down(db) {
    await db.raw('drop table known_browsers')
  },
}
