import { type Migration, now } from './migration.js'

/** Silenced and blocked people. Several sources may restrict one person: the stricter restriction holds. */
export const personRestrictions: Migration = {
  async up(db) {
    await db.raw(`
      create table person_restrictions (
        person_id bigint not null references people on delete cascade,
        -- An action of a moderator, or a rule about the pod of the person.
        source text not null check (source in ('action', 'pod_rule')),
        source_id bigint not null,
        kind text not null check (kind in ('silence', 'block')),
        created_at timestamptz(3) not null default ${now},
        primary key (person_id, source, source_id)
      );
      create index person_restrictions_source on person_restrictions (source, source_id);

      -- The strictest of person_restrictions.
      alter table people add column restriction text check (restriction in ('silence', 'block'));
      create index people_restricted on people (id) where restriction is not null;

      -- Contacts of blocked people are inactive: neither side shares. These are the values before the block.
      alter table contacts
        add column inactive_sharing boolean,
        add column inactive_receiving boolean,
        drop constraint contacts_check,
        add constraint contacts_check check (sharing or receiving or inactive_sharing is not null);
    `)
  },

  async down(db) {
    await db.raw(`
      update contacts set sharing = inactive_sharing, receiving = inactive_receiving
      where inactive_sharing is not null and (inactive_sharing or inactive_receiving);
      delete from contacts where not (sharing or receiving);
      alter table contacts
        drop constraint contacts_check,
        drop column inactive_receiving,
        drop column inactive_sharing,
        add constraint contacts_check check (sharing or receiving);
      drop index people_restricted;
      alter table people drop column restriction;
      drop table person_restrictions;
    `)
  },
}
