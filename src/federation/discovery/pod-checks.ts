import { raw } from 'objection'
import { type Actor, requirePower } from '../../domain/moderation/actor.js'
import { Refusal } from '../../domain/refusals.js'
import { checkPodJob } from '../../jobs/definitions.js'
import { Pod as OtherPod, type PodHost } from '../../persistence/models/pod.js'
import { findPodsToCheck } from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { formatAddressHost } from '../../protocol/address.js'
import { DELIVERY_LIMITS } from '../outbound/limits.js'
import { isLocalOverload } from '../remote-pod/remote-pod-error.js'
import { checkPod, savePodCheck } from './pod-info.js'
import { buildRequestOrigin } from './pod-location.js'

/** Enqueues the daily check of each pod, and an earlier one for offline pods that have sent a message. */
export async function enqueuePodChecks({ db, jobs }: Pick<Pod, 'db' | 'jobs'>): Promise<void> {
  const pods = await findPodsToCheck(db, DELIVERY_LIMITS)
  const podJobs = pods.map((podId) => ({ data: { podId }, unique: `check-${podId}` }))
  await jobs.enqueueEach(checkPodJob, podJobs, { again: true })
}

/** Checks a pod now and saves the result with each step of a connection, on request of an operator. False: the pod has no usable address. */
export async function probeKnownPod(pod: Pod, other: PodHost): Promise<boolean> {
  const origin = buildRequestOrigin({ ...other, ssl: true })
  if (origin === undefined) return false
  const check = await checkPod(pod, origin)
  const steps = (await pod.remote.probe?.(check.frontPage?.origin ?? origin)) ?? []
  await savePodCheck(pod.db, other, check, pod.now())
  const probe = { at: pod.now().toISOString(), steps }
  await OtherPod.query(pod.db)
    .where({ host: other.host, port: other.port })
    .patch({ probe: raw('?::jsonb', [JSON.stringify(probe)]) })
  return true
}

const PROBE_EVERY_MS = 10_000

/** The same for an admin: one probe of a pod in ten seconds, for all admins together. */
export async function probePod(
  pod: Pod,
  actor: Actor,
  { id, host, port, blockedAt }: PodHost & { readonly id: number; readonly blockedAt: Date | null },
): Promise<void> {
  requirePower(actor, 'administration')
  if (blockedAt !== null) throw new Refusal('pod_blocked', 'The pod is blocked, so no request is sent to it.')
  const now = pod.now()
  const isClaimed = await OtherPod.query(pod.db)
    .findById(id)
    .whereRaw('(checked_at is null or checked_at <= ?)', [new Date(now.getTime() - PROBE_EVERY_MS)])
    .patch({ checkedAt: now })
  if (isClaimed === 0) throw new Refusal('probed_recently', 'The pod was probed a moment ago. Wait ten seconds.')
  if (await probeKnownPod(pod, { host, port })) return
  throw new Refusal('pod_unusable', 'This is not a usable address of a pod.')
}

/** Checks a pod and saves the result in its row. */
export async function checkKnownPod(pod: Pod, podId: number): Promise<void> {
  // Saved first: a pod that is too slow for the check is checked again tomorrow, and not every minute.
  const other = await OtherPod.query(pod.db)
    .findById(podId)
    .whereNull('blockedAt')
    .patch({ checkedAt: pod.now() })
    .returning('*')
    .first()
  const origin = other === undefined ? undefined : buildRequestOrigin(other)
  if (other === undefined || origin === undefined) return
  try {
    const noted = await savePodCheck(pod.db, other, await checkPod(pod, origin), pod.now())
    const isBack = other.offlineSince !== null && noted?.offlineSince === null
    if (isBack) pod.log.info({ pod: formatAddressHost(other) }, 'pod reachable again')
  } catch (error) {
    if (!isLocalOverload(error)) throw error
  }
}
