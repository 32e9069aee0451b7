import { type Migration, now } from './migration.js'

/**
 * The account that signs for the pod. It is no person, so that it is in no list and no search. A message without a sender is signed
 * by it.
 */
export const podAccount: Migration = {
  async up(db) {
    await db.raw(`
      create table pod_account (
        id smallint primary key default 1 check (id = 1),
        guid text collate "C" not null unique,
        address text collate "C" not null unique check (address = lower(address)),
        public_key text not null,
        sealed_private_key bytea not null,
        created_at timestamptz(3) not null default ${now}
      );
      alter table outbound_messages
        alter column sender_id drop not null,
        add constraint outbound_messages_sender check (sender_id is not null or record = 'participation');
    `)
  },

  // Other pods know the key of the account: a new account of the same name could not sign.
  async down(db) {
    const { rows } = await db.raw('select from pod_account')
    if (rows.length > 0)
      throw new Error('Other pods know the account of this pod, which the version before cannot use.')
    await db.raw(`
      alter table outbound_messages
        drop constraint outbound_messages_sender,
        alter column sender_id set not null;
      drop table pod_account;
    `)
  },
}
