import { type Migration, now } from './migration.js'

export const quarantine: Migration = {
  async up(db) {
    await db.raw(`
      -- A sample of the messages of other pods that were rejected, so that an operator can examine and replay them.
      create table quarantine (
        id bigint generated always as identity primary key,
        received_at timestamptz(3) not null,
        -- When an equal message was last rejected.
        last_at timestamptz(3) not null default ${now},
        times integer not null default 1,
        -- Null: a public message.
        recipient_guid text collate "C",
        -- The network that posted the message.
        source text collate "C",
        -- These four are claims of a public message. Of private ones nothing decrypted is stored.
        author text collate "C",
        host text collate "C",
        entity text,
        guid text collate "C",
        fault text collate "C" not null,
        detail text,
        -- As it was received; a private one encrypted.
        payload text not null,
        bytes integer not null,
        -- False: only the beginning was stored, so that the message cannot be replayed.
        is_whole boolean not null,
        digest bytea not null unique,
        state text collate "C" not null default 'held' check (state in ('held', 'replaying', 'replayed')),
        -- Of the replay: stored, repeated, waiting, or the fault.
        result text
      );
      create index quarantine_fault on quarantine (fault, id);
      create index quarantine_host on quarantine (coalesce(host, source, ''), id);
    `)
  },

  async down(db) {
    await db.raw('drop table quarantine')
  },
}
