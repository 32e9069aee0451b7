import { type Migration, now } from './migration.js'

/** Replaced e-mail addresses that can be restored. A reset of the password deletes tokens of accounts, but none of these. */
export const emailUndos: Migration = {
  async up(db) {
    await db.raw(`
      create table email_undos (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        email text not null,
        token_hash bytea not null unique check (length(token_hash) = 32),
        expires_at timestamptz(3) not null,
        created_at timestamptz(3) not null default ${now},
        unique (user_id, email)
      );
      insert into email_undos (user_id, email, token_hash, expires_at)
        select user_id, email, token_hash, expires_at from account_tokens
        where purpose = 'undo_email' and email is not null and expires_at > now();
    `)
  },

  async down(db) {
    await db.raw('drop table email_undos')
  },
}
