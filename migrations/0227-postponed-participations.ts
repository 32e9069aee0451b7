import type { Migration } from './migration.js'

/** Posts that get a participation when their pod has accepted those that wait for it. */
export const postponedParticipations: Migration = {
  async up(db) {
    await db.raw(`
      create table postponed_participations (
        post_id bigint primary key references posts on delete cascade,
        pod_id bigint not null references pods on delete cascade
      );
      create index postponed_participations_pod_id on postponed_participations (pod_id, post_id);
    `)
  },

  async down(db) {
    await db.raw('drop table postponed_participations')
  },
}
