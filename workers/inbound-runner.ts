import { setMaxListeners } from 'node:events'
import type { Job } from 'bullmq'
import { groupCommit } from '../src/concurrency/group-commit.js'
import type { InboundMessage } from '../src/federation/inbound/batch.js'
import { receiveBatch } from '../src/federation/inbound/receive-batch.js'
import { isSeparateJob } from '../src/jobs/inbound/pack-messages.js'
import type { InboundQueue } from '../src/jobs/queues/queue-names.js'
import { isResourceLimitError } from '../src/persistence/database/errors.js'
import { envelopeBytes } from '../src/protocol/envelopes/envelope-bytes.js'
import type { Services } from '../src/services/services.js'
import { bisect } from './bisect.js'
import { withDeadline } from './deadline.js'
import { FailedJob } from './failed-job.js'
import type { InboundLoad } from './inbound-load.js'
import { OutOfTime, outcomeOfError } from './job-outcome.js'
import { createMessageReader, isMessageJob, splitJob } from './messages-of-job.js'
import { retryAfterOutages } from './retry-after-outage.js'
import { createJobRunner, hasFurtherTries, type RunnerOptions, runAndRecordFailure } from './run-job.js'
import { isSuspect } from './suspects.js'

/**
 * Three transactions keep the database busy. The largest batch has the lowest cost per message. A second and a third batch start only
 * with enough messages, otherwise jobs of one message would be stored in batches of ten. Alongside a slow batch any number is enough:
 * one large transaction must not delay all other messages.
 */
const BATCH_LIMITS = {
  maxConcurrent: 3,
  maxSize: 4 * 1024 * 1024,
  sizeOf: ({ envelope }: InboundMessage) => envelopeBytes(envelope),
}
/** Decrypting a private message takes as long as verifying sixty public ones. */
const ITEMS_OF_BATCH = {
  inbound: { maxItems: 256, minItems: 64, slowMs: 200 },
  'inbound-private': { maxItems: 64, minItems: 1 },
} as const

/**
 * Messages of sources that send more than their share are stored one small batch at a time, alongside the batches of all others. In
 * one batch with them, a message of another source would wait for hundreds of theirs.
 */
const SEPARATE_BATCH_LIMITS = { maxConcurrent: 1, maxItems: 64 } as const

/** What one message adds to the load, by queue. */
const LOAD_OF_MESSAGE = { inbound: 1, 'inbound-private': 16 } as const

/** The messages of a batch that have failed; all others are done. */
type Failures = ReadonlyMap<InboundMessage, unknown>

/** The runner of an inbound queue. Merges the messages of all running jobs into batches; each job ends with its own messages. */
export function createInboundRunner(
  services: Services,
  queue: InboundQueue,
  options: RunnerOptions & { readonly load: InboundLoad },
): (job: Job) => Promise<void> {
  setMaxListeners(0, options.abortSignal) // every batch under way listens
  const messagesOf = createMessageReader(services)
  const receiveTogether = (messages: readonly InboundMessage[]) => receiveWithBisection(services, options, messages)
  const receiveMerged = groupCommit({ ...BATCH_LIMITS, ...ITEMS_OF_BATCH[queue] }, receiveTogether)
  const receiveSeparately = groupCommit({ ...BATCH_LIMITS, ...SEPARATE_BATCH_LIMITS }, receiveTogether)
  const runOther = createJobRunner(services, options)

  async function run(job: Job): Promise<void> {
    const messages = await retryAfterOutages(services, options.abortSignal, () => messagesOf(job))
    await options.load.during(messages.length * LOAD_OF_MESSAGE[queue], () => receiveJob(job, messages))
  }

  async function receiveJob(job: Job, messages: readonly InboundMessage[]): Promise<void> {
    if (isSuspect(job) && messages.length > 1) return splitJob(services, job, messages, { alone: false })
    if (isSuspect(job)) {
      return options.runSuspect(job, async () =>
        retryFailedMessages(services, job, messages, await receiveTogether(messages)),
      )
    }
    const receiveShared = isSeparateJob(job.opts) ? receiveSeparately : receiveMerged
    const failures = await (job.data.alone === true ? receiveTogether : receiveShared)(messages)
    await retryFailedMessages(services, job, messages, failures)
  }

  return async (job) => {
    if (!isMessageJob(job)) return runOther(job)
    await runAndRecordFailure(services, options, job, () => run(job))
  }
}

async function receiveWithBisection(
  services: Services,
  options: RunnerOptions,
  messages: readonly InboundMessage[],
): Promise<Failures> {
  const dead = new Map<InboundMessage, unknown>()
  const failures = await bisect(
    messages,
    async (part) => {
      const unstoredMessages = await receive(services, options, part)
      for (const { inbound, fault } of unstoredMessages.givenUp) dead.set(inbound, new FailedJob(fault, 'dead'))
    },
    isTemporary,
  )
  return new Map([...failures, ...dead])
}

/** Receives a batch. Short outages and deadlocks cost no attempt of its jobs; a missed deadline is retried once. */
async function receive(
  services: Services,
  { timeoutMs, abortSignal }: RunnerOptions,
  messages: readonly InboundMessage[],
) {
  const run = () =>
    retryAfterOutages(services, abortSignal, () =>
      withDeadline(timeoutMs, abortSignal, () => receiveBatch(services, messages)),
    )
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

/**
 * Retries the failed messages of a job: throws while the job has further attempts for a temporary failure, or splits the job.
 * A message that fails never fails the others of its job: only jobs of one message fail permanently.
 */
async function retryFailedMessages(
  services: Services,
  job: Job,
  messages: readonly InboundMessage[],
  failures: Failures,
): Promise<void> {
  const failed = messages.filter((inbound) => failures.has(inbound))
  const errors = failed.map((inbound) => failures.get(inbound))
  const temporary = errors.find(isTemporary)
  if (messages.length > 1 && temporary !== undefined && hasFurtherTries(job)) throw temporary
  if (messages.length > 1 && failed.length > 0) return splitJob(services, job, failed, { alone: true })
  const [error] = errors
  if (error === undefined) return
  if (!isTemporary(error)) await markAsAlone(job)
  throw error
}

/** The next attempts of the job receive its message in a batch of its own. */
async function markAsAlone(job: Job): Promise<void> {
  await job.updateData({ ...job.data, alone: true })
}
