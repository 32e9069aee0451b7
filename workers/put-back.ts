import { DelayedError, type Job } from 'bullmq'
import type { Logger } from 'pino'

/** Milliseconds after which a job that needs a newer version is taken again: 5 s at first, at most a minute. */
export function putBackDelay(timesPutBack: number, random = Math.random): number {
  return Math.round(Math.min(5_000 * 2 ** timesPutBack, 60_000) * (0.75 + random() / 2))
}

/** How often a job was put back. Each of these starts is neither an attempt nor the end of a worker. */
export function timesPutBack({ data }: Pick<Job, 'data'>): number {
  const times: unknown = data?.timesPutBack
  return typeof times === 'number' ? times : 0
}

/** Whether the error tells BullMQ that a job was put back. */
export function isPutBack(error: unknown): boolean {
  return error instanceof DelayedError
}

interface PutBackOptions {
  readonly log: Logger
  /** Milliseconds until the job is taken again. */
  delay(timesPutBack: number): number
}

/**
 * Puts a running job back for later. This costs no attempt, however often it happens: a worker that knows the job may start hours later.
 * Always throws the error that tells BullMQ that the job was put back. If the queue is unavailable, the job is put back when its lock
 * expires.
 */
export async function putBack(job: Job, { log, delay }: PutBackOptions): Promise<never> {
  const times = timesPutBack(job)
  if (times === 0) log.warn('job needs a newer version of the program, put back')
  try {
    await job.updateData({ ...job.data, timesPutBack: times + 1 })
    await job.moveToDelayed(Date.now() + delay(times), job.token)
  } catch (err) {
    log.info({ err }, 'job not put back, waits for the end of its lock')
  }
  throw new DelayedError()
}
