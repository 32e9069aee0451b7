import type { Migration } from './migration.js'

export const deliveryLines: Migration = {
  async up(db) {
    await db.raw(`
      alter table deliveries
        -- 0: content of local users, 1: relays, 2: participations of the pod.
        add column priority smallint not null default 0 check (priority between 0 and 2);
      -- The waiting deliveries of a pod in the order in which they are sent; the due time is checked inside the index.
      create index deliveries_line on deliveries (pod_id, priority, id, due_at) where state = 'waiting';
      drop index deliveries_pod_id;

      alter table pods
        -- When the pod first answered a delivery with any HTTP status.
        add column answered_at timestamptz(3),
        -- When the pod first accepted a participation.
        add column participation_at timestamptz(3);
      -- The next post of an author in the order of storing.
      create index posts_of_author_stored on posts (author_id, id) where public;
      update pods set answered_at = last_success_at, participation_at = last_success_at;
    `)
  },

  async down(db) {
    await db.raw(`
      drop index posts_of_author_stored;
      alter table pods drop column answered_at, drop column participation_at;
      create index deliveries_pod_id on deliveries (pod_id, id);
      drop index deliveries_line;
      alter table deliveries drop column priority;
    `)
  },
}
