import type { JobQueues } from '../queues/job-queues.js'
import { INBOUND_QUEUES, type InboundQueue } from '../queues/queue-names.js'
import { openQueueSizeEstimate, type PackedSize, type QueueSizeEstimate } from './queue-size-estimate.js'

interface SizeOptions {
  readonly jobs: Pick<JobQueues, 'counts' | 'hasFreeMemory'>
  /** Milliseconds between two counts. */
  readonly countIntervalMs: number
  /** Called after each count. */
  onCounted(): void
}

/** The estimated size of the inbound queues. */
export interface InboundQueueSize {
  total(): PackedSize
  /** False: the store of the queue is nearly full. */
  hasFreeMemory(): boolean
  /** Adds a job to the queue, and counts it as long as it may be there. */
  add(queue: InboundQueue, job: PackedSize, add: () => Promise<void>): Promise<void>
  /** Counts now, or when the last count is old enough, and again until the queues are empty. */
  keepCounting(): void
  close(): void
}

/** Counts the jobs of the queues once a second as long as there are any. The first message starts the first count at once. */
export function openInboundQueueSize({ jobs, countIntervalMs, onCounted }: SizeOptions): InboundQueueSize {
  const estimates: Readonly<Record<InboundQueue, QueueSizeEstimate>> = {
    inbound: openQueueSizeEstimate(),
    'inbound-private': openQueueSizeEstimate(),
  }
  let countedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let hasFreeMemory = true

  function total(): PackedSize {
    const [publicSize, privateSize] = [estimates.inbound.total(), estimates['inbound-private'].total()]
    return { messages: publicSize.messages + privateSize.messages, bytes: publicSize.bytes + privateSize.bytes }
  }

  function keepCounting(): void {
    if (timer !== undefined || isClosed) return
    const delay = countedAt + countIntervalMs - performance.now()
    timer = setTimeout(countAll, Math.max(0, delay)).unref()
  }

  async function countAll(): Promise<void> {
    countedAt = performance.now()
    await Promise.all([checkMemory(), ...INBOUND_QUEUES.map(count)])
    timer = undefined
    onCounted()
    if (total().messages > 0 || !hasFreeMemory) keepCounting()
  }

  async function checkMemory(): Promise<void> {
    hasFreeMemory = await jobs.hasFreeMemory().catch(() => hasFreeMemory)
  }

  async function count(queue: InboundQueue): Promise<void> {
    const recordCount = estimates[queue].beginCount()
    try {
      const { waiting, active, delayed } = await jobs.counts(queue)
      recordCount(waiting + active + delayed)
    } catch {
      // The queue is unavailable: it accepts no job in the meantime, so that the estimate stays valid.
    }
  }

  return {
    total,
    hasFreeMemory: () => hasFreeMemory,
    keepCounting,

    async add(queue, job, add) {
      const entry = estimates[queue].add(job)
      keepCounting()
      try {
        await add()
        entry.acknowledged()
      } catch (error) {
        entry.failed()
        throw error
      }
    },

    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
