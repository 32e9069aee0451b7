import { type Migration, now } from './migration.js'

/** Notes of moderators about people, for other moderators. */
export const personNotes: Migration = {
  async up(db) {
    await db.raw(`
      create table person_notes (
        id bigint generated always as identity primary key,
        person_id bigint not null references people on delete cascade,
        -- {guid, name, role}
        actor jsonb not null,
        text text not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index person_notes_of_person on person_notes (person_id, id);
    `)
  },

  async down(db) {
    await db.raw('drop table person_notes')
  },
}
