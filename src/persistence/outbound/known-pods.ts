import type { Knex } from 'knex'
import type { PodHost, PodProbe, PodStatus } from '../models/pod.js'
import { POD_IS_ASLEEP, POD_IS_PAUSED, POD_IS_PROVEN } from './due-deliveries.js'

/** Another pod as an operator sees it. */
export interface KnownPod {
  readonly id: number
  readonly host: string
  readonly port: number
  readonly status: PodStatus
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
  readonly proven: boolean
  readonly asleep: boolean
  /** Number of known people of the pod. */
  readonly people: number
  /** Deliveries that have not arrived. */
  readonly waiting: number
  readonly dead: number
}

export interface KnownPodFilter {
  readonly place?: PodHost
  readonly state?: keyof typeof POD_STATE_CONDITIONS
}

/** SQL conditions of the states that lists of pods can be filtered by. */
export const POD_STATE_CONDITIONS = {
  normal: `pods.blocked_at is null and pods.limited_at is null`,
  limited: `pods.limited_at is not null`,
  blocked: `pods.blocked_at is not null`,
  paused: POD_IS_PAUSED,
  asleep: POD_IS_ASLEEP,
  offline: `pods.offline_since is not null`,
} as const

/** Lists pods by host. */
export async function listKnownPods(db: Knex, { place, state }: KnownPodFilter = {}): Promise<readonly KnownPod[]> {
  const { rows } = await db.raw(
    `select pods.id, pods.host, pods.port, pods.status, pods.last_error as "lastError", pods.software,
       pods.software_version as "softwareVersion", pods.failures, pods.next_try_at as "nextTryAt",
       pods.offline_since as "offlineSince", pods.last_success_at as "lastSuccessAt", pods.checked_at as "checkedAt",
       pods.blocked_at as "blockedAt", pods.limited_at as "limitedAt", pods.paused_until as "pausedUntil", pods.skipped_deliveries as "skippedDeliveries", pods.probe,
       ${POD_IS_PROVEN} as proven, ${POD_IS_ASLEEP} as asleep,
       (select count(*) from people where people.pod_id = pods.id) as people,
       counted.waiting,
       counted.dead
     from pods
     left join lateral (
       select count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'dead') as dead
       from deliveries where deliveries.pod_id = pods.id
     ) as counted on true
     where ${state === undefined ? 'true' : POD_STATE_CONDITIONS[state]}
       and (cast(:host as text) is null or (pods.host = :host and pods.port = :port))
     order by pods.host, pods.port`,
    { host: place?.host ?? null, port: place?.port ?? null },
  )
  return rows
}
