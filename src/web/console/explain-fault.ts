import type { RemoteFault } from '../../federation/remote-pod/remote-pod-error.js'
import type { TemporaryFault } from '../../protocol/errors.js'

/** Faults that a job of any kind can have. */
type JobFault = 'internal' | 'timeout' | 'stopped' | 'crashed' | 'discarded' | 'unknown_name' | 'mail_unsent'

type DeliveryFault = 'no_key' | 'pod_asleep' | 'pod_blocked'

type DeadLetterFault = JobFault | DeliveryFault | RemoteFault | TemporaryFault

/** The meaning of each fault of a dead letter, with advice for the operator. */
const FAULTS: Readonly<Record<DeadLetterFault, string>> = {
  internal: 'An error of this program. The log of the worker has it; report it, and replay after the update.',
  timeout: 'The job took too long. Replay it when the pod has less to do.',
  stopped: 'The process stopped while the job ran. Replay it.',
  crashed: 'Worker processes crashed while they ran this job. Replay it alone, and watch their memory.',
  discarded: 'An operator discarded the jobs of the queue. Replay it to receive the message, or delete it.',
  unknown_name: 'This version of the program has no job of this name. Replay it after the update, or delete it.',
  not_allowed: 'The address of the pod is not allowed: a private network, or a port below 1024 other than 443.',
  busy: 'This process had no capacity for requests to other pods. Replay it when the pod has less to do.',
  dns: 'The name of the pod has no address. The pod may be gone.',
  net: 'The pod could not be reached.',
  ssl: 'The certificate of the pod is invalid. Its operator can repair it.',
  bad_answer: 'The response of the pod is not valid HTTP.',
  answer_too_large: 'The response of the pod was too large.',
  too_many_redirects: 'The pod redirects too often.',
  moved: 'The pod redirects deliveries, which are not followed. It may have another address now.',
  gone: 'The pod has no inbox at its address.',
  refused: 'The pod refuses this delivery. Another attempt rarely helps.',
  overloaded: 'The pod was overloaded. Replay the deliveries later.',
  pod_asleep: 'The pod was offline for 14 days. Wake it when it is back.',
  pod_blocked: 'The pod is blocked.',
  mail_unsent: 'The mail server did not accept this mail in any attempt. Replay it when mail works again.',
  no_key: 'The sender or the recipient has no usable key.',
  DiscoveryFailed: 'The sender could not be looked up. Replay when their pod answers again.',
  NotFetchable: 'The referenced entity could not be fetched.',
  TargetNotFound: 'The entity to which the message refers never arrived.',
  ConversationNotFound: 'The conversation of the message never arrived.',
}

/** Rows of earlier versions may have other faults. */
export function explainFault(fault: string | null): string {
  return isDeadLetterFault(fault)
    ? FAULTS[fault]
    : 'The log has more about this fault, at the time when it was given up.'
}

function isDeadLetterFault(fault: string | null): fault is DeadLetterFault {
  return fault !== null && Object.hasOwn(FAULTS, fault)
}
