import { vi } from 'vitest'
import { INBOUND_QUEUES } from '../../../src/jobs/queues/queue-names.js'
import type { Services } from '../../../src/services/services.js'

/** Replaces the worker: takes jobs from the inbound queues without parsing them. */
export interface InboundQueueRecorder extends AsyncDisposable {
  readonly messages: readonly RecordedMessage[]
  /** The number of messages in each job. */
  readonly jobs: readonly number[]
  /** Resolves with all recorded messages once there are at least this many. */
  until(count: number): Promise<readonly RecordedMessage[]>
}

interface RecordedMessage {
  readonly envelope: string
  readonly recipientGuid?: string
}

type JobData = { readonly messages: readonly (string | RecordedMessage)[] }

export function recordInboundQueue(pod: Pick<Services, 'jobs'>): InboundQueueRecorder {
  const recorded: RecordedMessage[] = []
  const sizes: number[] = []
  const workers = INBOUND_QUEUES.map((queue) =>
    pod.jobs.serve(
      queue,
      async (job) => {
        const { messages } = job.data as JobData // as enqueued by the inbound endpoint
        sizes.push(messages.length)
        recorded.push(...messages.map((message) => (typeof message === 'string' ? { envelope: message } : message)))
      },
      { concurrency: 1, lockMs: 30_000, stalledCheckMs: 15_000, backoff: () => 10 },
    ),
  )
  return {
    messages: recorded,
    jobs: sizes,
    async until(count) {
      await vi.waitFor(
        () => {
          if (recorded.length < count) throw new Error(`only ${recorded.length} of ${count} messages were recorded`)
        },
        { interval: 20 },
      )
      return recorded
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.close()))
    },
  }
}
