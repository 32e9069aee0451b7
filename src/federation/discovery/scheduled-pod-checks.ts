import { raw } from 'objection'
import { type Actor, requirePower } from '../../domain/moderation/actor.js'
import { Refusal } from '../../domain/refusals.js'
import { checkPodJob } from '../../jobs/definitions.js'
import { type PodHost, RemotePod } from '../../persistence/models/remote-pod.js'
import { findPodsToCheck } from '../../persistence/outbound/known-pods.js'
import { formatAddressHost } from '../../protocol/address.js'
import type { Services } from '../../services/services.js'
import { DELIVERY_LIMITS } from '../outbound/limits.js'
import { isLocalOverload } from '../remote-pod/remote-pod-error.js'
import { checkPod, savePodCheck } from './check-pod.js'
import { buildRequestOrigin } from './pod-location.js'

/** Enqueues the daily check of each pod, and an earlier one for offline pods that have sent a message. */
export async function addPodChecks({ db, jobs }: Pick<Services, 'db' | 'jobs'>): Promise<void> {
  const pods = await findPodsToCheck(db, DELIVERY_LIMITS)
  const podJobs = pods.map((podId) => ({ data: { podId }, deduplicationKey: `check-${podId}` }))
  await jobs.addEach(checkPodJob, podJobs, { mayExist: true })
}

/** Checks a pod now and saves the result with each step of a connection, on request of an operator. False: the pod has no usable address. */
export async function probeKnownPod(services: Services, pod: PodHost): Promise<boolean> {
  const origin = buildRequestOrigin({ ...pod, ssl: true })
  if (origin === undefined) return false
  const check = await checkPod(services, origin)
  const steps = (await services.remotePods.probe?.(check.frontPage?.origin ?? origin)) ?? []
  await savePodCheck(services.db, pod, check, services.now())
  const probe = { at: services.now().toISOString(), steps }
  await RemotePod.query(services.db)
    .where({ host: pod.host, port: pod.port })
    .patch({ probe: raw('?::jsonb', [JSON.stringify(probe)]) })
  return true
}

const PROBE_INTERVAL_MS = 10_000

/** Checks a pod for an admin: one probe of a pod in ten seconds, for all admins together. */
export async function probePodForAdmin(
  services: Services,
  actor: Actor,
  { id, host, port, blockedAt }: PodHost & { readonly id: number; readonly blockedAt: Date | null },
): Promise<void> {
  requirePower(actor, 'administration')
  if (blockedAt !== null) throw new Refusal('pod_blocked', 'The pod is blocked, so no request is sent to it.')
  const now = services.now()
  const isClaimed = await RemotePod.query(services.db)
    .findById(id)
    .whereRaw('(checked_at is null or checked_at <= ?)', [new Date(now.getTime() - PROBE_INTERVAL_MS)])
    .patch({ checkedAt: now })
  if (isClaimed === 0) throw new Refusal('probed_recently', 'The pod was probed a moment ago. Wait ten seconds.')
  if (await probeKnownPod(services, { host, port })) return
  throw new Refusal('pod_unusable', 'This is not a usable address of a pod.')
}

/** Checks a pod and saves the result in its row. */
export async function checkKnownPod(services: Services, podId: number): Promise<void> {
  // Saved first: a pod that is too slow for the check is checked again tomorrow, and not every minute.
  const pod = await RemotePod.query(services.db)
    .findById(podId)
    .whereNull('blockedAt')
    .patch({ checkedAt: services.now() })
    .returning('*')
    .first()
  const origin = pod === undefined ? undefined : buildRequestOrigin(pod)
  if (pod === undefined || origin === undefined) return
  try {
    const podAfter = await savePodCheck(services.db, pod, await checkPod(services, origin), services.now())
    const isBack = pod.offlineSince !== null && podAfter?.offlineSince === null
    if (isBack) services.log.info({ pod: formatAddressHost(pod) }, 'pod reachable again')
  } catch (error) {
    if (!isLocalOverload(error)) throw error
  }
}
