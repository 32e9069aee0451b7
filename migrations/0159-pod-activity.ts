import type { Migration } from './migration.js'

/** Exchanges with each other pod: totals of days for the record of a pod, and ten-minute slots for its recent rates and latencies. */
export const podActivity: Migration = {
  async up(db) {
    await db.raw(`
      create table pod_days (
        pod_id bigint not null references pods on delete cascade,
        day date not null,
        delivered integer not null default 0,
        failed integer not null default 0,
        received integer not null default 0,
        refused integer not null default 0,
        primary key (pod_id, day)
      );
      create index pod_days_by_day on pod_days (day);
      create table pod_slots (
        pod_id bigint not null references pods on delete cascade,
        slot timestamptz(3) not null,
        delivered integer not null default 0,
        received integer not null default 0,
        -- Deliveries by the buckets of their duration.
        latencies integer[] not null default '{}',
        primary key (pod_id, slot)
      );
      create index pod_slots_by_time on pod_slots (slot);
    `)
  },

  async down(db) {
    await db.raw('drop table pod_slots; drop table pod_days')
  },
}
