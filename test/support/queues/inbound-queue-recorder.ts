import { vi } from 'vitest'
import type { Pod } from '../../../src/pod/pod.js'

/** Replaces the worker: takes jobs from the inbound queues without parsing them. */
export interface InboundQueueRecorder extends AsyncDisposable {
  readonly messages: readonly RecordedMessage[]
  /** How many messages each job had. */
  readonly jobs: readonly number[]
  /** Resolves with all that has come so far once there are so many of them. */
  until(count: number): Promise<readonly RecordedMessage[]>
}

interface RecordedMessage {
  readonly envelope: string
  readonly recipientGuid?: string
}

type JobData = { readonly messages: readonly (string | RecordedMessage)[] }

export function recordInboundQueue(pod: Pick<Pod, 'jobs'>): InboundQueueRecorder {
  const taken: RecordedMessage[] = []
  const sizes: number[] = []
  const workers = (['inbound', 'inbound-private'] as const).map((queue) =>
    pod.jobs.serve(
      queue,
      async (job) => {
        const { messages } = job.data as JobData // as enqueued by the inbound endpoint
        sizes.push(messages.length)
        taken.push(...messages.map((message) => (typeof message === 'string' ? { envelope: message } : message)))
      },
      { concurrency: 1, lock: 30_000, stalledCheck: 15_000, backoff: () => 10 },
    ),
  )
  return {
    messages: taken,
    jobs: sizes,
    async until(count) {
      await vi.waitFor(
        () => {
          if (taken.length < count) throw new Error(`only ${taken.length} of ${count} messages have come`)
        },
        { timeout: 15_000, interval: 20 },
      )
      return taken
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map((worker) => worker.close()))
    },
  }
}
