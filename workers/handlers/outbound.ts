import { checkKnownPod } from '../../src/federation/discovery/scheduled-pod-checks.js'
import { deliver } from '../../src/federation/outbound/deliver.js'
import { dispatchInOrder } from '../../src/federation/outbound/dispatch.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { forwardEnvelope } from '../../src/federation/outbound/forward-envelope.js'
import { participate } from '../../src/federation/outbound/participate.js'
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
import type { JobHandlers } from './job-handlers.js'

export const outboundHandlers: JobHandlers<typeof dispatchJob | typeof deliverJob> = {
  dispatch: (services, work) => dispatchInOrder(services, work),
  deliver: (services, { data: { podIds } }, signal) => deliver(services, podIds, { queue: 'outbound', signal }),
}

export const outboundSlowHandlers: JobHandlers<
  typeof deliverToUnprovenPodsJob | typeof checkPodJob | typeof forwardEnvelopeJob | typeof participateJob
> = {
  // Serves rows of earlier versions: the job has another queue now.
  participate: (services, work) => participate(services, groupOfJob(work)),
  deliver: (services, { data: { podIds } }, signal) => deliver(services, podIds, { queue: 'outbound-slow', signal }),
  'check-pod': (services, { data: { podId } }) => checkKnownPod(services, podId),
  'forward-envelope': (services, { data }) => forwardEnvelope(services, data),
}

export const relayHandlers: JobHandlers<typeof dispatchRelaysJob | typeof participateJob> = {
  'dispatch-relays': (services, work) => dispatchRelays(services, groupOfJob(work)),
  participate: (services, work) => participate(services, groupOfJob(work)),
}
