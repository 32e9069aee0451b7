import type { Migration } from './migration.js'

export const claimedFollowers: Migration = {
  async up(db) {
    await db.raw(`
      -- People who shared with the old account of a user, by the archive. They get public posts until their pod confirms or ends
      -- the sharing.
      create table claimed_followers (
        user_id bigint not null references users on delete cascade,
        person_id bigint not null references people on delete cascade,
        created_at timestamptz(3) not null default date_trunc('milliseconds', now()),
        primary key (user_id, person_id)
      );
      create index claimed_followers_person_id on claimed_followers (person_id);
      create index claimed_followers_created_at on claimed_followers (created_at);
    `)
  },

  async down(db) {
    await db.raw('drop table claimed_followers')
  },
}
