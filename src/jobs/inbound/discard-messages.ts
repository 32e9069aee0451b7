import type { Job } from 'bullmq'
import type { Pod } from '../../pod/pod.js'
import { inChunks } from '../chunks.js'
import { markFailed, readOutboxId } from '../outbox/outbox.js'
import { insertDeadMessages, readAcceptedMessages } from './accepted-messages.js'

const JOB_BATCH_SIZE = 50
const FAULT = 'discarded'

/**
 * Turns the jobs of an inbound queue that have not begun into dead letters, one for each message: nothing else has these messages.
 * Returns their number. A job that begins meanwhile is left alone.
 */
export async function discardMessages(
  { db, jobs }: Pick<Pod, 'db' | 'jobs'>,
  queue: 'inbound' | 'inbound-private',
): Promise<number> {
  let discarded = 0
  for (const ids of inChunks(await jobs.notBegun(queue), JOB_BATCH_SIZE)) {
    const foundJobs = await Promise.all(ids.map((id) => jobs.find(queue, id)))
    for (const job of foundJobs) if (job !== undefined) discarded += await discardJob(db, job)
  }
  return discarded
}

async function discardJob(db: Pod['db'], job: Job): Promise<number> {
  const outboxId = readOutboxId(job.data)
  if (outboxId !== undefined) {
    await markFailed(db, outboxId, { fault: FAULT })
    await job.remove().catch(() => {})
    return 1
  }
  // The rows come first: a crash between the two stores a message twice, and storing it again has no effect.
  const ids = await insertDeadMessages(db, readAcceptedMessages(job), FAULT)
  try {
    await job.remove()
    return ids.length
  } catch {
    // A worker runs the job.
    await db('outbox')
      .whereIn('id', [...ids])
      .delete()
    return 0
  }
}
