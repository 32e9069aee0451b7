import { checkKnownPod } from '../../src/federation/discovery/pod-checks.js'
import { type DeliverOptions, deliver } from '../../src/federation/outbound/deliver.js'
import { dispatchInOrder } from '../../src/federation/outbound/dispatch.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { forwardEnvelope } from '../../src/federation/outbound/forward-envelope.js'
import { participate, participateInPostponedPosts } from '../../src/federation/outbound/participate.js'
import type {
  checkPodJob,
  deliverJob,
  deliverToUnprovenPodsJob,
  dispatchJob,
  dispatchRelaysJob,
  forwardEnvelopeJob,
  participateJob,
} from '../../src/jobs/definitions.js'
import { groupOfJob } from '../../src/jobs/outbox/job-groups.js'
import type { Services } from '../../src/services/services.js'
import type { JobHandlers } from './job-handlers.js'

/** Sends due deliveries; where participations have arrived, those for the next posts follow. */
export async function deliverAndParticipate(
  services: Services,
  podIds: readonly number[],
  options: Omit<DeliverOptions, 'onParticipations'>,
): Promise<void> {
  await deliver(services, podIds, {
    ...options,
    onParticipations: (podId) => participateInPostponedPosts(services, podId),
  })
}

export const outboundHandlers: JobHandlers<typeof dispatchJob | typeof deliverJob> = {
  dispatch: (services, work) => dispatchInOrder(services, work),
  deliver: (services, { data: { podIds } }, signal) =>
    deliverAndParticipate(services, podIds, { queue: 'outbound', signal }),
}

export const outboundSlowHandlers: JobHandlers<
  typeof deliverToUnprovenPodsJob | typeof checkPodJob | typeof forwardEnvelopeJob | typeof participateJob
> = {
  // For rows of earlier versions: the job has another queue now.
  participate: (services, work) => participate(services, groupOfJob(work)),
  deliver: (services, { data: { podIds } }, signal) =>
    deliverAndParticipate(services, podIds, { queue: 'outbound-slow', signal }),
  'check-pod': (services, { data: { podId } }) => checkKnownPod(services, podId),
  'forward-envelope': (services, { data }) => forwardEnvelope(services, data),
}

export const relayHandlers: JobHandlers<typeof dispatchRelaysJob | typeof participateJob> = {
  'dispatch-relays': (services, work) => dispatchRelays(services, groupOfJob(work)),
  participate: (services, work) => participate(services, groupOfJob(work)),
}
