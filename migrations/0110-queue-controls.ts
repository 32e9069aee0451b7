import { type Migration, now } from './migration.js'

/** The requested states of queues, and the processes of the pod. */
export const queueControls: Migration = {
  async up(db) {
    await db.raw(`
      -- Kept outside of the queue store: workers pause a queue again after its store was emptied. No row: running.
      create table queue_controls (
        queue text primary key,
        state text not null check (state in ('running', 'paused', 'draining')),
        actor text not null,
        reason text not null,
        until timestamptz(3),
        changed_at timestamptz(3) not null default ${now}
      );

      -- Heartbeats, written every few seconds. Unlogged: they need no write-ahead log, and mean nothing after a crash.
      create unlogged table processes (
        id uuid primary key,
        kind text not null,
        host text collate "C" not null,
        pid integer not null,
        version text not null,
        started_at timestamptz(3) not null,
        seen_at timestamptz(3) not null,
        facts jsonb not null
      ) with (fillfactor = 50);

      -- Waiting jobs by queue, sampled every minute; no row: none waited.
      create table queue_samples (
        minute timestamptz(0) not null,
        queue text not null,
        waiting integer not null,
        primary key (minute, queue)
      );
    `)
  },

  async down(db) {
    await db.raw(`drop table queue_samples, processes, queue_controls`)
  },
}
