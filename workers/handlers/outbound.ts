import { checkKnownPod } from '../../src/federation/discovery/pod-checks.js'
import { deliver } from '../../src/federation/outbound/deliver.js'
import { dispatchInOrder } from '../../src/federation/outbound/dispatch.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { forwardEnvelope } from '../../src/federation/outbound/forward-envelope.js'
import { participate } from '../../src/federation/outbound/participate.js'
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
import type { JobContext } from '../../src/jobs/outbox/outbox.js'
import type { Pod } from '../../src/pod/pod.js'

export const outboundHandlers: Handlers<typeof dispatchJob | typeof deliverJob, Pod, JobContext> = {
  dispatch: (pod, work) => dispatchInOrder(pod, work),
  deliver: (pod, { data: { podIds } }, signal) => deliver(pod, podIds, { queue: 'outbound', signal }),
}

export const outboundSlowHandlers: Handlers<
  typeof deliverSlowlyJob | typeof checkPodJob | typeof forwardEnvelopeJob | typeof participateJob,
  Pod,
  JobContext
> = {
  // For rows of earlier versions: the job has another queue now.
  participate: (pod, work) => participate(pod, work),
  deliver: (pod, { data: { podIds } }, signal) => deliver(pod, podIds, { queue: 'outbound-slow', signal }),
  'check-pod': (pod, { data: { podId } }) => checkKnownPod(pod, podId),
  'forward-envelope': (pod, { data }) => forwardEnvelope(pod, data),
}

export const relayHandlers: Handlers<typeof dispatchRelaysJob | typeof participateJob, Pod, JobContext> = {
  'dispatch-relays': (pod, work) => dispatchRelays(pod, work),
  participate: (pod, work) => participate(pod, work),
}
