import type { Migration } from './migration.js'

/** A refresh token ends after 400 days without use; existing ones without an end get 400 days from now. */
export const endOfAccess: Migration = {
  async up(db) {
    await db.raw(`
      update refresh_tokens
      set expires_at = date_trunc('milliseconds', now()) + interval '400 days'
      where expires_at is null or expires_at > now() + interval '400 days';
      alter table refresh_tokens alter column expires_at set not null;
      create index refresh_tokens_expires_at on refresh_tokens (expires_at);
    `)
  },
  async down(db) {
    await db.raw(`
      drop index refresh_tokens_expires_at;
      alter table refresh_tokens alter column expires_at drop not null;
    `)
  },
}
