import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import type { PodCheckStatus, PodHost, PodProbe } from '../models/remote-pod.js'
import { POD_IS_ASLEEP_SQL, POD_IS_PAUSED_SQL, POD_IS_PROVEN_SQL } from './delivery-conditions.js'

/** Another pod as an operator sees it. */
export interface KnownPod {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly status: PodCheckStatus
  readonly lastError: string | null
  readonly software: string | null
  readonly softwareVersion: string | null
  readonly failures: number
  readonly nextTryAt: Date | null
  readonly offlineSince: Date | null
  readonly lastSuccessAt: Date | null
  readonly checkedAt: Date | null
  readonly blockedAt: Date | null
  readonly limitedAt: Date | null
  /** Null, or in the past: not paused. */
  readonly pausedUntil: Date | null
  readonly skippedDeliveries: number
  /** Null: no operator has probed it. */
  readonly probe: PodProbe | null
  readonly isProven: boolean
  readonly asleep: boolean
  /** Number of known people of the pod. */
  readonly people: number
  /** Deliveries that have not arrived. */
  readonly waiting: number
  readonly dead: number
}

export interface KnownPodFilter {
  readonly hostPort?: PodHost
  readonly state?: keyof typeof POD_LIST_CONDITIONS
  /** Each count ends at one more than this. Without it, all rows are counted: a request must not do that. */
  readonly maxCounted?: number
}

/** SQL conditions of the states that lists of pods can be filtered by. */
export const POD_LIST_CONDITIONS = {
  normal: `pods.blocked_at is null and pods.limited_at is null`,
  limited: `pods.limited_at is not null`,
  blocked: `pods.blocked_at is not null`,
  paused: POD_IS_PAUSED_SQL,
  asleep: POD_IS_ASLEEP_SQL,
  offline: `pods.offline_since is not null`,
} as const

/** The order makes PostgreSQL use the index of the dead deliveries of one pod; other indexes have all pods. */
export const DEAD_OF_POD_SQL = `
  select from deliveries where deliveries.pod_id = pods.id and state = 'dead' order by died_at desc, id desc`

/** Lists pods by host. */
export async function listKnownPods(
  db: Knex,
  { hostPort, state, maxCounted }: KnownPodFilter = {},
): Promise<readonly KnownPod[]> {
  const count = (rows: string) =>
    `(select count(*)::integer from (${rows} ${maxCounted === undefined ? '' : 'limit :limit'}) as counted)`
  return queryRows<KnownPod>(
    db,
    `select pods.id, pods.host, pods.port, pods.status, pods.last_error as "lastError", pods.software,
       pods.software_version as "softwareVersion", pods.failures, pods.next_try_at as "nextTryAt",
       pods.offline_since as "offlineSince", pods.last_success_at as "lastSuccessAt", pods.checked_at as "checkedAt",
       pods.blocked_at as "blockedAt", pods.limited_at as "limitedAt", pods.paused_until as "pausedUntil", pods.skipped_deliveries as "skippedDeliveries", pods.probe,
       ${POD_IS_PROVEN_SQL} as "isProven", ${POD_IS_ASLEEP_SQL} as asleep,
       ${count('select from people where people.pod_id = pods.id')} as people,
       ${count(`select from deliveries where deliveries.pod_id = pods.id and state = 'waiting'`)} as waiting,
       ${count(DEAD_OF_POD_SQL)} as dead
     from pods
     where ${state === undefined ? 'true' : POD_LIST_CONDITIONS[state]}
       and (cast(:host as text) is null or (pods.host = :host and pods.port = :port))
     order by pods.host, pods.port`,
    {
      host: hostPort?.host ?? null,
      port: hostPort?.port ?? null,
      ...(maxCounted !== undefined && { limit: maxCounted + 1 }),
    },
  )
}

/** Finds pods without a check for a day. Offline pods that sent a message are due sooner. */
export async function findPodsToCheck(
  db: Knex,
  {
    checkEveryHours,
    recheckMinutes,
    checksPerRun,
  }: Record<'checkEveryHours' | 'recheckMinutes' | 'checksPerRun', number>,
): Promise<readonly number[]> {
  const rows = await queryRows<{ readonly id: number }>(
    db,
    `select id
     from pods
     where blocked_at is null and not ${POD_IS_PAUSED_SQL}
       and (
         coalesce(checked_at, created_at) <= now() - :checkEveryHours * interval '1 hour'
         or check_wanted and coalesce(checked_at <= now() - :recheckMinutes * interval '1 minute', true)
       )
     order by check_wanted desc, coalesce(checked_at, created_at)
     limit :checksPerRun`,
    { checkEveryHours, recheckMinutes, checksPerRun },
  )
  return rows.map((row) => row.id)
}
