import { setMaxListeners } from 'node:events'
import type { Job } from 'bullmq'
import type { InboundMessage } from '../src/federation/inbound/batch.js'
import { receiveBatch } from '../src/federation/inbound/receive-batch.js'
import { groupCommit } from '../src/jobs/group-commit.js'
import type { QueueName } from '../src/jobs/queues/queue-names.js'
import { isResourceLimitError } from '../src/persistence/database/errors.js'
import type { Pod } from '../src/pod/pod.js'
import { bisect } from './bisect.js'
import { withDeadline } from './deadline.js'
import { FailedJob } from './failed-job.js'
import { OutOfTime, outcomeOfError } from './job-outcome.js'
import { carriesMessages, goOnAlone, messageReader } from './messages-of-job.js'
import { despiteOutages } from './retry-after-outage.js'
import { endOfFailure, hasFurtherTries, jobRunner, type RunnerOptions } from './run-job.js'
import { isSuspect } from './suspects.js'

/**
 * Three transactions keep the database busy; a batch of the largest size costs a message next to nothing. A second and a third
 * begin only with so many that it is cheap too: what comes in jobs of one message would else be stored in batches of ten. Beside
 * a slow batch any number is enough: one large transaction must not hold up all other messages.
 */
const MERGED = { atOnce: 3, bytes: 4 * 1024 * 1024, sizeOf: ({ envelope }: InboundMessage) => envelope.length }
/** A private one takes a thread as long as sixty public ones. */
const MESSAGES = {
  inbound: { items: 256, enough: 64, slowMs: 200 },
  'inbound-private': { items: 64, enough: 1 },
} as const

export type InboundQueue = keyof typeof MESSAGES

export function isInbound(queue: QueueName): queue is InboundQueue {
  return Object.hasOwn(MESSAGES, queue)
}

/** Every message of a batch has reached its end, but these have not. */
type Failures = ReadonlyMap<InboundMessage, unknown>

/** The runner of a queue of messages: those of all running jobs are taken in together, and each job ends when its own have. */
export function inboundRunner(pod: Pod, queue: InboundQueue, options: RunnerOptions): (job: Job) => Promise<void> {
  setMaxListeners(0, options.stopping) // every batch under way listens
  const messagesOf = messageReader(pod)
  const takeInMerged = groupCommit({ ...MERGED, ...MESSAGES[queue] }, (messages: readonly InboundMessage[]) =>
    takeIn(pod, options, messages),
  )
  const runOther = jobRunner(pod, options)

  async function run(job: Job): Promise<void> {
    const messages = await despiteOutages(pod, options.stopping, () => messagesOf(job))
    if (isSuspect(job) && messages.length > 1) return goOnAlone(pod, job, messages, { alone: false })
    if (isSuspect(job)) {
      return options.suspects(job, async () => settle(pod, job, messages, await takeIn(pod, options, messages)))
    }
    const failures = await (job.data.alone === true ? takeIn(pod, options, messages) : takeInMerged(messages))
    await settle(pod, job, messages, failures)
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

async function takeIn(pod: Pod, options: RunnerOptions, messages: readonly InboundMessage[]): Promise<Failures> {
  const dead = new Map<InboundMessage, unknown>()
  const failures = await bisect(
    messages,
    async (some) => {
      const ended = await receive(pod, options, some)
      for (const { message, fault } of ended.givenUp) dead.set(message, new FailedJob(fault, 'dead'))
    },
    isPassing,
  )
  return new Map([...failures, ...dead])
}

/** An outage or a deadlock costs a batch no attempt of its jobs, unless it lasts. A deadline is missed twice before it counts. */
async function receive(pod: Pod, { deadline, stopping }: RunnerOptions, messages: readonly InboundMessage[]) {
  const run = () =>
    despiteOutages(pod, stopping, () => withDeadline(deadline, stopping, () => receiveBatch(pod, messages)))
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof OutOfTime && error.fault === 'timeout') || messages.length === 1) throw error
    return run()
  }
}

/**
 * False for errors that one message of a batch may cause: unforeseen ones, and a transaction that is too large or takes too
 * long. Such a batch is bisected, so that the message fails alone.
 */
function isPassing(error: unknown): boolean {
  const outcome = outcomeOfError(error)
  if (outcome.kind === 'ours') return !isResourceLimitError(error)
  return outcome.kind !== 'retry' || (outcome.fault !== 'internal' && outcome.fault !== 'timeout')
}

/** A message that fails never takes its neighbours with it: only jobs of one message fail for good. */
async function settle(pod: Pod, job: Job, messages: readonly InboundMessage[], failures: Failures): Promise<void> {
  const failed = messages.filter((message) => failures.has(message))
  const errors = failed.map((message) => failures.get(message))
  const passing = errors.find(isPassing)
  if (messages.length > 1 && passing !== undefined && hasFurtherTries(job)) throw passing
  if (messages.length > 1 && failed.length > 0) return goOnAlone(pod, job, failed, { alone: true })
  const [error] = errors
  if (error === undefined) return
  if (!isPassing(error)) await job.updateData({ ...job.data, alone: true })
  throw error
}
