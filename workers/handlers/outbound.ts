import { checkKnownPod } from '../../src/federation/discovery/pod-checks.js'
import { type DeliverOptions, deliver } from '../../src/federation/outbound/deliver.js'
import { dispatchInOrder } from '../../src/federation/outbound/dispatch.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { forwardEnvelope } from '../../src/federation/outbound/forward-envelope.js'
import { participate, participateInNext } from '../../src/federation/outbound/participate.js'
import type {
  checkPodJob,
  deliverJob,
  deliverSlowlyJob,
  dispatchJob,
  dispatchRelaysJob,
  forwardEnvelopeJob,
  Handlers,
  participateJob,
} from '../../src/jobs/definitions.js'
import { groupOfJob, type JobContext } from '../../src/jobs/outbox/outbox.js'
import type { Pod } from '../../src/pod/pod.js'

/** Sends due deliveries; where participations have arrived, those for the next posts follow. */
export async function deliverAndParticipate(
  pod: Pod,
  podIds: readonly number[],
  options: Omit<DeliverOptions, 'onParticipations'>,
): Promise<void> {
  await deliver(pod, podIds, { ...options, onParticipations: (arrived) => participateInNext(pod, arrived) })
}

export const outboundHandlers: Handlers<typeof dispatchJob | typeof deliverJob, Pod, JobContext> = {
  dispatch: (pod, work) => dispatchInOrder(pod, work),
  deliver: (pod, { data: { podIds } }, signal) => deliverAndParticipate(pod, podIds, { queue: 'outbound', signal }),
}

export const outboundSlowHandlers: Handlers<
  typeof deliverSlowlyJob | typeof checkPodJob | typeof forwardEnvelopeJob | typeof participateJob,
  Pod,
  JobContext
> = {
  // For rows of earlier versions: the job has another queue now.
  participate: (pod, work) => participate(pod, groupOfJob(work)),
  deliver: (pod, { data: { podIds } }, signal) =>
    deliverAndParticipate(pod, podIds, { queue: 'outbound-slow', signal }),
  'check-pod': (pod, { data: { podId } }) => checkKnownPod(pod, podId),
  'forward-envelope': (pod, { data }) => forwardEnvelope(pod, data),
}

export const relayHandlers: Handlers<typeof dispatchRelaysJob | typeof participateJob, Pod, JobContext> = {
  'dispatch-relays': (pod, work) => dispatchRelays(pod, groupOfJob(work)),
  participate: (pod, work) => participate(pod, groupOfJob(work)),
}
