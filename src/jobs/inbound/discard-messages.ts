import type { Job } from 'bullmq'
import type { Services } from '../../services/services.js'
import type { JobSummary } from '../bullmq/job-summaries.js'
import { readOutboxId } from '../outbox/load-job.js'
import type { InboundQueue } from '../queues/queue-names.js'
import { QueueUnavailable } from '../queues/queue-unavailable.js'
import { giveUpOutboxRow } from '../waiting/resume-messages.js'
import { findJobs, insertDeadMessages, readAcceptedMessages } from './accepted-messages.js'

const FAULT = 'discarded'

interface DiscardedJobs {
  readonly jobs: number
  /** The messages of these jobs, which are dead letters now. */
  readonly messages: number
  /** Jobs that began in the meantime; they are left alone. */
  readonly begun: number
}

interface JobChoice {
  /** Only jobs that were added up to this time. */
  readonly addedBy?: Date
  readonly limit: number
}

/**
 * Turns jobs of an inbound queue that have not begun into dead letters, one for each message: nothing else has these messages. The rows
 * are committed before their jobs are removed.
 */
export async function discardMessages(
  services: Pick<Services, 'db' | 'jobs'>,
  queue: InboundQueue,
  choice: JobChoice,
): Promise<DiscardedJobs> {
  const { jobs } = services
  const jobIds = await chooseJobs(services, queue, choice)
  let done = 0
  let messages = 0
  for await (const job of findJobs(jobs, queue, jobIds)) {
    const discardedMessages = await discardJob(services, queue, job)
    messages += discardedMessages
    if (discardedMessages > 0) done += 1
  }
  return { jobs: done, messages, begun: jobIds.length - done }
}

/** Waiting jobs are listed in the order in which they were added. Delayed ones are not: later pages may have older jobs. */
async function chooseJobs(
  { jobs }: Pick<Services, 'jobs'>,
  queue: InboundQueue,
  { addedBy, limit }: JobChoice,
): Promise<readonly string[]> {
  const isChosen = ({ addedAt }: JobSummary) => addedBy === undefined || addedAt <= addedBy.getTime()
  const chosenJobs = (await jobs.list(queue, 'waiting', 0, limit)).filter(isChosen)
  for (let from = 0; chosenJobs.length < limit; from += limit) {
    const page = await jobs.list(queue, 'delayed', from, limit)
    if (page.length === 0) break
    chosenJobs.push(...page.filter(isChosen))
  }
  return chosenJobs.slice(0, limit).map(({ id }) => id)
}

async function discardJob(services: Pick<Services, 'db' | 'jobs'>, queue: InboundQueue, job: Job): Promise<number> {
  const { db, jobs } = services
  const outboxId = readOutboxId(job.data)
  if (outboxId !== undefined) {
    await giveUpOutboxRow(services, outboxId, { fault: FAULT })
    await job.remove().catch(() => {})
    return 1
  }
  // The rows are written first: after a crash before the removal both exist, and storing a message again has no effect.
  const ids = await insertDeadMessages(db, readAcceptedMessages(job), FAULT)
  try {
    await job.remove()
    return ids.length
  } catch (cause) {
    // A removal whose answer was lost may have taken effect, or may still do so, except while a worker has the job.
    const state = await jobs.stateOf(queue, job.id ?? '')
    if (state === undefined) return ids.length
    if (state !== 'active') throw new QueueUnavailable('The queue did not confirm that a job was removed.', { cause })
    await db('outbox')
      .whereIn('id', [...ids])
      .delete()
    return 0
  }
}
