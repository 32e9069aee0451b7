import { type Migration, now } from './migration.js'

/** Comments, likes and votes that were forwarded to the new pod of an account, so that each is forwarded once. */
export const forwardedRelayables: Migration = {
  async up(db) {
    await db.raw(`
      create table forwarded_relayables (
        author_id bigint not null references people on delete cascade,
        guid text collate "C" not null,
        -- The pod of the author, by which the number of a day is limited; null: an author of this pod.
        pod_id bigint,
        forwarded_at timestamptz(3) not null default ${now},
        primary key (author_id, guid)
      );
      create index forwarded_relayables_recent on forwarded_relayables (forwarded_at)
    `)
  },

  async down(db) {
    await db.raw('drop table forwarded_relayables')
  },
}
