import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import type { PodHost } from '../models/remote-pod.js'

/** Activity with a pod since the last write. */
export interface PodActivity extends PodHost {
  readonly delivered: number
  readonly failed: number
  readonly received: number
  readonly refused: number
  /** Deliveries by the bucket of their duration, see `LATENCY_BOUNDS`. */
  readonly latencies: readonly number[]
}

/** Milliseconds; the last bucket has no bound. */
export const LATENCY_BOUNDS = [10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, Number.POSITIVE_INFINITY]

/** Adds to the current day (UTC) and the current ten minutes with one statement. Pods without a row are left out. */
export async function addPodActivity(db: Knex, activity: readonly PodActivity[]): Promise<void> {
  if (activity.length > 0) await queryPrepared(db, 'add-pod-activity', ADDED_ACTIVITY_SQL, [JSON.stringify(activity)])
}

/** Adds the counts in the order of the pods, so that two processes cannot deadlock. */
const ADDED_ACTIVITY_SQL = `
  with input as materialized (
    select pods.id as pod_id, input.*
    from json_to_recordset($1::json) as input(
      host text, port integer, delivered integer, failed integer, received integer, refused integer, latencies integer[]
    )
    join pods on pods.host = input.host and pods.port = input.port
    order by pods.id
  ), days as (
    insert into pod_days (pod_id, day, delivered, failed, received, refused)
    select pod_id, (now() at time zone 'utc')::date, delivered, failed, received, refused from input
    on conflict (pod_id, day) do update set
      delivered = pod_days.delivered + excluded.delivered,
      failed = pod_days.failed + excluded.failed,
      received = pod_days.received + excluded.received,
      refused = pod_days.refused + excluded.refused
  )
  insert into pod_slots (pod_id, slot, delivered, received, latencies)
  select pod_id, date_bin('10 minutes', now(), timestamptz '2000-01-01'), delivered, received, latencies from input
  on conflict (pod_id, slot) do update set
    delivered = pod_slots.delivered + excluded.delivered,
    received = pod_slots.received + excluded.received,
    latencies = array(
      select coalesce(known, 0) + coalesce(added, 0)
      from unnest(pod_slots.latencies, excluded.latencies) with ordinality as bucket(known, added, bucket_index) order by bucket_index
    )`

/** A day (UTC) of the exchanges with a pod. */
export interface PodDay {
  /** The day as YYYY-MM-DD. */
  readonly day: string
  readonly delivered: number
  readonly failed: number
  readonly received: number
  readonly refused: number
}

/** The last 14 days, the latest first; days without an exchange are left out. */
export async function listPodDays(db: Knex, podId: number): Promise<readonly PodDay[]> {
  return queryRows<PodDay>(
    db,
    `select to_char(day, 'YYYY-MM-DD') as day, delivered, failed, received, refused
     from pod_days where pod_id = ? and day > (now() at time zone 'utc')::date - 14 order by pod_days.day desc`,
    [podId],
  )
}

/** Deliveries of the last 24 hours by the bucket of their duration. */
export async function sumPodLatencies(db: Knex, podId: number): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly count: number }>(
    db,
    `select sum(count)::integer as count
     from pod_slots cross join lateral unnest(latencies) with ordinality as bucket(count, bucket_index)
     where pod_id = ? and slot > now() - interval '24 hours' group by bucket_index order by bucket_index`,
    [podId],
  )
  return rows.map(({ count }) => count)
}
