import { type Migration, now } from './migration.js'

/**
 * A guid that two remote people claim belongs to the first one with a valid signature. A person may publish the key of another person:
 * without the private key that has no use, so keys are no longer unique.
 */
export const provenPeople: Migration = {
  async up(db) {
    await db.raw(`
      drop index people_public_key;

      alter table people
        -- The first valid signature of the person; null: none, or a local person.
        add column proven_at timestamptz(3),
        -- The guid of the person on their own pod, where another person has it here; \`guid\` is one that this pod made then.
        add column guid_at_pod text collate "C" check (length(guid_at_pod) between 16 and 255 and guid_at_pod <> guid);
      create index people_guid_at_pod on people (guid_at_pod) where guid_at_pod is not null;

      -- All stored content of a remote person has a valid signature of that person.
      update people set proven_at = ${now}
      where pod_id is not null and (
        exists (select from posts where author_id = people.id)
        or exists (select from photos where author_id = people.id)
        or exists (select from comments where author_id = people.id)
        or exists (select from likes where author_id = people.id)
        or exists (select from poll_participations where author_id = people.id)
        or exists (select from participations where author_id = people.id)
        or exists (select from conversations where author_id = people.id)
        or exists (select from messages where author_id = people.id)
        or exists (select from contacts where person_id = people.id and sharing)
        or exists (select from profiles where person_id = people.id and accepted_at is not null)
      );
    `)
  },

  async down(db) {
    await db.raw(`
      alter table people drop column proven_at, drop column guid_at_pod;
      create index people_public_key on people using hash (public_key);
    `)
  },
}
