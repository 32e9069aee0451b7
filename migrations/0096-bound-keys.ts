import type { Migration } from './migration.js'

/** Encrypted private keys are bound to their user. A worker encrypts existing keys again. */
export const boundKeys: Migration = {
  async up(db) {
    await db.raw(`
      alter table user_secrets add column bound boolean not null default false;
      create index user_secrets_unbound on user_secrets (user_id) where not bound;
    `)
  },
  // The former version cannot decrypt a bound key, so its accounts could neither read nor sign.
  async down(db) {
    const { rows } = await db.raw('select from user_secrets where bound limit 1')
    if (rows.length > 0) throw new Error('Private keys are bound to their users: the version before cannot open them.')
    await db.raw(`
      drop index user_secrets_unbound;
      alter table user_secrets drop column bound;
    `)
  },
}
