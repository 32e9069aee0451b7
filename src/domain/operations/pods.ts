import type { Knex } from 'knex'
import { raw } from 'objection'
import { quantile } from '../../jobs/operations/quantile.js'
import { startDeliveriesAfterCommit } from '../../jobs/outbox/start-deliveries.js'
import { type PodHost, RemotePod } from '../../persistence/models/remote-pod.js'
import { type ListedPodRule, listRulesOfHost } from '../../persistence/moderation/pod-rules.js'
import { LATENCY_BOUNDS, listPodDays, type PodDay, sumPodLatencies } from '../../persistence/operations/pod-activity.js'
import {
  type ListedPod,
  listPodErrors,
  listPodPage,
  MAX_COUNTED,
  type PodError,
  type PodExchange,
  type PodListFilter,
  readPodExchange,
} from '../../persistence/operations/pod-lists.js'
import { giveUpDeliveriesInBatches, reviveDeliveriesOfPods } from '../../persistence/outbound/dead-deliveries.js'
import { type KnownPod, listKnownPods } from '../../persistence/outbound/known-pods.js'
import type { OffsetPage } from '../../persistence/sql/keyset-page.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { ModerationServices, Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { blockHost, unblockHost } from '../moderation/pods/pod-rules.js'
import { Refusal } from '../refusals.js'
import { recordOperatorChange } from './record-operator-change.js'
import { requirePodChange } from './require-pod-change.js'

export type PodAction = 'wake' | 'sleep' | 'block' | 'unblock'

export interface PodWithRules {
  readonly pod: KnownPod
  /** The rules for its host; the first one counts. */
  readonly rules: readonly ListedPodRule[]
  readonly activity: PodActivityReport
  readonly exchange: PodExchange
  /** The last ten, the latest first. */
  readonly errors: readonly PodError[]
}

export interface PodActivityReport {
  /** The last 14 days (UTC), the latest first. */
  readonly days: readonly PodDay[]
  /** Milliseconds of a delivery in the last 24 hours. Null: there was none. */
  readonly latency: { readonly p50: number | null; readonly p95: number | null }
}

/** Lists known pods. */
export async function listPods(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  filter: PodListFilter,
  { offset, limit }: OffsetPage,
): Promise<{ readonly items: readonly ListedPod[]; readonly hasMore: boolean }> {
  requirePower(actor, 'moderation')
  const podPage = await listPodPage(db, filter, { offset, limit: limit + 1 })
  return { items: podPage.slice(0, limit), hasMore: podPage.length > limit }
}

/** Finds a known pod by its host, with the port if it is not 443. */
export async function findPod({ db }: Pick<Services, 'db'>, actor: Actor, name: string): Promise<KnownPod> {
  requirePower(actor, 'moderation')
  const hostPort = readHostPort(name)
  const [pod] = hostPort === undefined ? [] : await listKnownPods(db, { hostPort, maxCounted: MAX_COUNTED })
  if (pod === undefined) throw new Refusal('pod_not_found', 'No pod at this host is known.')
  return pod
}

/** Reads the host of a pod, with the port if it is not 443. Undefined: it is none. */
export function readHostPort(name: string): { readonly host: string; readonly port: number } | undefined {
  const [, host, digits = '443'] = /^([^/?#\s]{1,255}?)(?::([0-9]{1,5}))?$/.exec(name) ?? []
  const port = Number(digits)
  return host === undefined || port > 65_535 ? undefined : { host: host.toLowerCase(), port }
}

/** Finds a known pod with all that its page shows. */
export async function readPod({ db }: Pick<Services, 'db'>, actor: Actor, name: string): Promise<PodWithRules> {
  const pod = await findPod({ db }, actor, name)
  const [rules, activity, exchange, errors] = await Promise.all([
    listRulesOfHost(db, pod),
    readPodActivity({ db }, pod.id),
    readPodExchange(db, pod.id),
    listPodErrors(db, pod.id),
  ])
  return { pod, rules, activity, exchange, errors }
}

export async function readPodActivity({ db }: Pick<Services, 'db'>, podId: number): Promise<PodActivityReport> {
  const [days, counts] = await Promise.all([listPodDays(db, podId), sumPodLatencies(db, podId)])
  const buckets = counts.map((count, index) => ({ bound: LATENCY_BOUNDS[index] ?? Number.POSITIVE_INFINITY, count }))
  const roundedQuantile = (fraction: number) => {
    const milliseconds = quantile(buckets, fraction)
    return milliseconds === null ? null : Math.round(milliseconds)
  }
  return { days, latency: { p50: roundedQuantile(0.5), p95: roundedQuantile(0.95) } }
}

const MAX_PAUSE_MS = 14 * DAY_MS

/**
 * Deliveries to a pod and fetches from it wait until then, at most 14 days. Without an end a pause that is in force stays as it is. What
 * waits still expires 14 days after it was written.
 */
export async function pausePod(
  services: ModerationServices,
  actor: Actor,
  { id, ...podHost }: PodHost & { readonly id: number },
  { until, ...options }: { readonly until?: Date | undefined; readonly reason?: string | undefined },
): Promise<boolean> {
  const auditFields = requirePodChange(actor, podHost, options)
  const now = services.now().getTime()
  const end = until ?? new Date(now + MAX_PAUSE_MS)
  if (end.getTime() <= now || end.getTime() > now + MAX_PAUSE_MS) {
    throw new Refusal('until_invalid', 'A pause must end within 14 days.')
  }
  return recordOperatorChange(services, actor, { action: 'pod.pause', ...auditFields }, async (transaction) => {
    const podQuery = RemotePod.query(transaction).findById(id)
    const toChange =
      until === undefined
        ? podQuery.where((notPaused) => notPaused.whereNull('pausedUntil').orWhere('pausedUntil', '<=', services.now()))
        : podQuery.whereRaw('paused_until is distinct from ?', [end])
    const rowCount = await toChange.patch({ pausedUntil: end })
    return rowCount === 0 ? undefined : { until: end.toISOString() }
  })
}

/** Ends a pause. False: the pod was not paused. */
export async function resumePod(
  services: ModerationServices,
  actor: Actor,
  { id, ...podHost }: PodHost & { readonly id: number },
  options: { readonly reason?: string | undefined },
): Promise<boolean> {
  const auditFields = requirePodChange(actor, podHost, options)
  return recordOperatorChange(services, actor, { action: 'pod.resume', ...auditFields }, async (transaction) => {
    const pausedPod = RemotePod.query(transaction).findById(id).where('pausedUntil', '>', services.now())
    if ((await pausedPod.patch({ pausedUntil: null })) === 0) return undefined
    startDeliveriesAfterCommit(services, transaction, [{ podId: id, isProven: false }])
    return { until: null }
  })
}

/**
 * Changes what this pod does with another one, with an audit entry. The caller has made sure that it is confirmed. Returns whether there
 * was a change; a pod without failures is awake already.
 */
export async function changePod(
  services: ModerationServices,
  actor: Actor,
  action: PodAction,
  { id, host, port, ...options }: PodHost & { readonly id: number; readonly reason?: string | undefined },
): Promise<boolean> {
  if (action === 'block') {
    await blockHost(services, actor, { host, port }, { ...options, isConfirmed: true })
    return true
  }
  if (action === 'unblock') {
    await unblockHost(services, actor, { host, port }, options)
    return true
  }
  const auditFields = requirePodChange(actor, { host, port }, options)
  const change = { action: `pod.${action}`, ...auditFields }
  const hasChanged = await recordOperatorChange(services, actor, change, async (transaction) => {
    if (action === 'wake') return (await wakePod(services, transaction, id)) ? {} : undefined
    await putPodToSleep(transaction, id)
    return {}
  })
  if (action === 'sleep') await giveUpDeliveriesInBatches(services.db)
  return hasChanged
}

/**
 * Treats a pod as if it had been offline for two weeks: no deliveries are stored until a check of the pod succeeds. A message from it
 * requests a check.
 */
async function putPodToSleep(transaction: Knex.Transaction, podId: number): Promise<void> {
  const offlineSince = raw('coalesce(offline_since, now())')
  await RemotePod.query(transaction)
    .findById(podId)
    .patch({ offlineSince, asleepAt: raw('now()'), checkWanted: false })
}

/**
 * Clears the failures of a pod, revives deliveries that it lost while asleep, and enqueues due deliveries after the commit. Returns
 * whether there were such failures or deliveries.
 */
async function wakePod(
  services: Pick<Services, 'jobs' | 'log'>,
  transaction: Knex.Transaction,
  podId: number,
): Promise<boolean> {
  const failedPods = await RemotePod.query(transaction)
    .findById(podId)
    .whereRaw('(offline_since is not null or failures > 0 or next_try_at is not null)')
    .patch({ offlineSince: null, failures: 0, nextTryAt: null })
  const revivedDeliveries = await reviveDeliveriesOfPods(transaction, [podId], 'pod_asleep')
  startDeliveriesAfterCommit(services, transaction, [{ podId, isProven: false }])
  return failedPods + revivedDeliveries > 0
}
