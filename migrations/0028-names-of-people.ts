import type { Migration } from './migration.js'

/**
 * People are listed by their display name, even if thousands of names match: the first ones are read from one index, without their
 * rows. A rare part of a name is found by its trigrams.
 */
export const namesOfPeople: Migration = {
  async up(db) {
    await db.raw(`
      alter table people add column shown_name text collate "C" not null generated always as (
        lower(coalesce(nullif(name, ''), split_part(address collate "default", '@', 1)))
      ) stored;
      create index people_shown_name on people (shown_name, address) include (id, name) where closed_at is null;
      create index people_part_of_name on people using gin (shown_name gin_trgm_ops)
        where closed_at is null and name <> '';
      drop index people_name;
    `)
  },
  async down(db) {
    await db.raw(`
      create index people_name on people using gin (name gin_trgm_ops);
      alter table people drop column shown_name;
    `)
  },
}
