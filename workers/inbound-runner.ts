import { setMaxListeners } from 'node:events'
import type { Job } from 'bullmq'
import type { InboundMessage } from '../src/federation/inbound/batch.js'
import { receiveBatch } from '../src/federation/inbound/receive-batch.js'
import { groupCommit } from '../src/jobs/group-commit.js'
import type { QueueName } from '../src/jobs/queues/queue-names.js'
import { isResourceLimitError } from '../src/persistence/database/errors.js'
import type { Pod } from '../src/pod/pod.js'
import { envelopeBytes } from '../src/protocol/envelopes/envelope-bytes.js'
import { bisect } from './bisect.js'
import { withDeadline } from './deadline.js'
import { FailedJob } from './failed-job.js'
import type { InboundLoad } from './inbound-load.js'
import { OutOfTime, outcomeOfError } from './job-outcome.js'
import { carriesMessages, messageReader, splitJob } from './messages-of-job.js'
import { retryAfterOutages } from './retry-after-outage.js'
import { endOfFailure, hasFurtherTries, jobRunner, type RunnerOptions } from './run-job.js'
import { isSuspect } from './suspects.js'

/**
 * Three transactions keep the database busy. The largest batch has the lowest cost per message. A second and a third batch start only
 * with enough messages, otherwise jobs of one message would be stored in batches of ten. Beside a slow batch any number is enough:
 * one large transaction must not delay all other messages.
 */
const BATCHES = { atOnce: 3, size: 4 * 1024 * 1024, sizeOf: ({ envelope }: InboundMessage) => envelopeBytes(envelope) }
/** Decrypting a private message takes as long as verifying sixty public ones. */
const MESSAGES = {
  inbound: { items: 256, enough: 64, slowMs: 200 },
  'inbound-private': { items: 64, enough: 1 },
} as const

/**
 * Messages of sources that send more than their share are stored one small batch at a time, beside the batches of all others. In
 * one batch with them, a message of another source would wait for hundreds of theirs.
 */
const APART = { atOnce: 1, items: 64 } as const

/** What a message of a queue counts as load of the process. */
const WEIGHTS = { inbound: 1, 'inbound-private': 16 } as const

export type InboundQueue = keyof typeof MESSAGES

export function isInbound(queue: QueueName): queue is InboundQueue {
  return Object.hasOwn(MESSAGES, queue)
}

/** The messages of a batch that have failed; all others are done. */
type Failures = ReadonlyMap<InboundMessage, unknown>

/** The runner of an inbound queue. Merges the messages of all running jobs into batches; each job ends with its own messages. */
export function inboundRunner(
  pod: Pod,
  queue: InboundQueue,
  options: RunnerOptions & { readonly load: InboundLoad },
): (job: Job) => Promise<void> {
  setMaxListeners(0, options.stopping) // every batch under way listens
  const messagesOf = messageReader(pod)
  const receiveTogether = (messages: readonly InboundMessage[]) => receiveWithBisection(pod, options, messages)
  const receiveMerged = groupCommit({ ...BATCHES, ...MESSAGES[queue] }, receiveTogether)
  const receiveApart = groupCommit({ ...BATCHES, ...APART }, receiveTogether)
  const runOther = jobRunner(pod, options)

  async function run(job: Job): Promise<void> {
    const messages = await retryAfterOutages(pod, options.stopping, () => messagesOf(job))
    await options.load.during(messages.length * WEIGHTS[queue], () => receiveJob(job, messages))
  }

  async function receiveJob(job: Job, messages: readonly InboundMessage[]): Promise<void> {
    if (isSuspect(job) && messages.length > 1) return splitJob(pod, job, messages, { alone: false })
    if (isSuspect(job)) {
      return options.suspects(job, async () => endJob(pod, job, messages, await receiveTogether(messages)))
    }
    const receiveShared = isPackedApart(job) ? receiveApart : receiveMerged
    const failures = await (job.data.alone === true ? receiveTogether : receiveShared)(messages)
    await endJob(pod, job, messages, failures)
  }

  return async (job) => {
    if (!carriesMessages(job)) return runOther(job)
    try {
      await run(job)
    } catch (error) {
      throw await endOfFailure(pod, job, error)
    }
  }
}

/** Jobs of messages that were packed apart have a priority (see pack-messages.ts). */
function isPackedApart({ opts }: Job): boolean {
  return (opts.priority ?? 0) > 0
}

async function receiveWithBisection(
  pod: Pod,
  options: RunnerOptions,
  messages: readonly InboundMessage[],
): Promise<Failures> {
  const dead = new Map<InboundMessage, unknown>()
  const failures = await bisect(
    messages,
    async (part) => {
      const ended = await receive(pod, options, part)
      for (const { message, fault } of ended.givenUp) dead.set(message, new FailedJob(fault, 'dead'))
    },
    isTemporary,
  )
  return new Map([...failures, ...dead])
}

/** Receives a batch. Short outages and deadlocks cost no attempt of its jobs; a missed deadline is retried once. */
async function receive(pod: Pod, { deadline, stopping }: RunnerOptions, messages: readonly InboundMessage[]) {
  const run = () =>
    retryAfterOutages(pod, stopping, () => withDeadline(deadline, stopping, () => receiveBatch(pod, messages)))
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof OutOfTime && error.fault === 'timeout') || messages.length === 1) throw error
    return run()
  }
}

/**
 * Whether an error is temporary. False for errors that one message of a batch may cause: unforeseen ones, and a transaction that is
 * too large or too slow. Such a batch is bisected, so that the message fails alone.
 */
function isTemporary(error: unknown): boolean {
  const outcome = outcomeOfError(error)
  if (outcome.kind === 'unavailable') return !isResourceLimitError(error)
  return outcome.kind !== 'retry' || (outcome.fault !== 'internal' && outcome.fault !== 'timeout')
}

/** Ends a job. A message that fails never fails the others of its job: only jobs of one message fail permanently. */
async function endJob(pod: Pod, job: Job, messages: readonly InboundMessage[], failures: Failures): Promise<void> {
  const failed = messages.filter((message) => failures.has(message))
  const errors = failed.map((message) => failures.get(message))
  const temporary = errors.find(isTemporary)
  if (messages.length > 1 && temporary !== undefined && hasFurtherTries(job)) throw temporary
  if (messages.length > 1 && failed.length > 0) return splitJob(pod, job, failed, { alone: true })
  const [error] = errors
  if (error === undefined) return
  if (!isTemporary(error)) await job.updateData({ ...job.data, alone: true })
  throw error
}
