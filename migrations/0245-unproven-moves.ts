import type { Migration } from './migration.js'

/** A proven move of an account is stored beside an unproven one to another account. Proven ones are unique by `old_person_id`. */
export const unprovenMoves: Migration = {
  async up(db) {
    await db.raw(`
      alter table account_migrations drop constraint account_migrations_old_address_key;
      create unique index account_migrations_unproven on account_migrations (old_address) where old_person_id is null;
    `)
  },

  async down(db) {
    await db.raw(`
      delete from account_migrations as unproven using account_migrations as proven
      where unproven.old_person_id is null and proven.old_person_id is not null and proven.old_address = unproven.old_address;
      drop index account_migrations_unproven;
      alter table account_migrations add constraint account_migrations_old_address_key unique (old_address);
    `)
  },
}
