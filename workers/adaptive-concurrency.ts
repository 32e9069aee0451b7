import type { Job } from 'bullmq'
import { carriesMessages } from './messages-of-job.js'

/** Jobs that an inbound worker takes in hand whatever they hold, and so many only while they hold little. */
const JOBS = { least: 32, most: 256 } as const
/** Messages in hand that fill all batches which may be under way. */
const MESSAGES = 768

/** What a worker is told when a job begins. */
interface Room {
  /** Returns how many jobs the worker may have in hand from now on. */
  enter(job: Job): number
  leave(job: Job): void
}

/**
 * A quiet pod makes jobs of one message. When thousands of them have gathered, as many have to be in hand as make a batch worth
 * its transaction; jobs that are full are as many messages in a few. It grows by what is in hand, since a worker begins with
 * nothing of what it fetches before it has fetched as much as it may.
 */
export function openRoom(): Room {
  let jobs = 0
  let messages = 0
  return {
    enter(job) {
      jobs += 1
      messages += messagesOf(job)
      return messages >= MESSAGES ? JOBS.least : Math.min(JOBS.most, Math.max(JOBS.least, 2 * jobs))
    },
    leave(job) {
      jobs -= 1
      messages -= messagesOf(job)
    },
  }
}

/** A job of an outbox row carries none, and is about one. */
function messagesOf(job: Job): number {
  return carriesMessages(job) ? (job.data.messages?.length ?? 1) : 0
}
