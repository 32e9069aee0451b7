import { setTimeout as pause } from 'node:timers/promises'
import { Queue } from 'bullmq'
import type { QueueName } from './queue-names.js'
import type { QueueStore, Report } from './queue-store.js'
import { QueueUnavailable } from './queue-unavailable.js'

export type OpenQueue = Queue<unknown, void, string, unknown, void, string, ReturnType<QueueStore['backend']>, 'shared'>

/** The queues of one store, each opened at its first request. */
export interface QueueClient {
  /** Rejects with QueueUnavailable when the answer does not come in time. */
  request<Answer>(
    name: QueueName,
    send: (queue: OpenQueue) => Promise<Answer>,
    options?: { readonly withinMs?: number | undefined },
  ): Promise<Answer>
  /** Whether the queue answers, and soon. Never rejects. */
  answers(): Promise<boolean>
  close(): Promise<void>
}

export interface QueueTimeouts {
  /** Milliseconds for a request to the store; clients wait longer. */
  readonly requestMs: number
  /** Milliseconds until the store must have acknowledged a job. */
  readonly addMs: number
}

const ACKNOWLEDGED_WITHIN_MS = 1_000

export const QUEUE_TIMEOUTS: QueueTimeouts = { requestMs: 5_000, addMs: ACKNOWLEDGED_WITHIN_MS }
/** Timeout of the request that distinguishes an outage from a single failure. */
const HEALTH_CHECK_WITHIN_MS = 2_000
const CLOSED_WITHIN_MS = 1_000

interface ClientOptions {
  readonly store: QueueStore
  /** Prefix of every key in Redis. */
  readonly prefix: string
  readonly report: Report
  readonly timeoutMs: number
  /** Called for each request that the queue did not answer. */
  suspectOutage(error: QueueUnavailable): void
}

export function openQueueClient(options: ClientOptions): QueueClient {
  const { store, prefix, report, timeoutMs, suspectOutage } = options
  const open = new Map<QueueName, OpenQueue>()
  const underWay = new Set<Promise<unknown>>()

  function queueOf(name: QueueName): OpenQueue {
    const openQueue = open.get(name)
    if (openQueue) return openQueue
    const queue: OpenQueue = new Queue(
      name,
      { connection: 'shared', prefix: store.prefixOf(prefix, name), streams: { events: { maxLen: 100 } } },
      store.backend,
    )
    queue.on('error', (error: Error) => report(name, error))
    open.set(name, queue)
    // A queue whose first contact failed never recovers; the next request opens another.
    queue.waitUntilReady().catch(() => {
      if (open.get(name) === queue) open.delete(name)
      void queue.close().catch(() => {})
    })
    return queue
  }

  function unavailable(error: QueueUnavailable): QueueUnavailable {
    suspectOutage(error)
    return error
  }

  /** The time limit is around the whole request: parts of it have none of their own. */
  const request: QueueClient['request'] = async (name, send, { withinMs = timeoutMs } = {}) => {
    if (!store.isReady()) throw unavailable(new QueueUnavailable('The queue is unavailable.'))
    const answer = send(queueOf(name))
    underWay.add(answer)
    const forgetAnswer = () => void underWay.delete(answer)
    answer.then(forgetAnswer, forgetAnswer)
    try {
      return await withTimeLimit(answer, withinMs)
    } catch (error) {
      if (isInvalidData(error)) throw error
      if (error instanceof QueueUnavailable) throw unavailable(error)
      throw unavailable(
        new QueueUnavailable('The queue did not accept the job or answer the request.', { cause: error }),
      )
    }
  }

  return {
    request,

    answers: () =>
      request('inbound', (queue) => queue.getJobCounts('waiting'), { withinMs: HEALTH_CHECK_WITHIN_MS }).then(
        () => true,
        () => false,
      ),

    async close() {
      await Promise.race([Promise.allSettled(underWay), pause(CLOSED_WITHIN_MS, undefined, { ref: false })])
      await Promise.allSettled([...open.values()].map((queue) => queue.close()))
    },
  }
}

async function withTimeLimit<Answer>(answer: Promise<Answer>, withinMs: number): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new QueueUnavailable(`The queue did not answer within ${withinMs} ms.`)), withinMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

/** PostgreSQL class 22: the value cannot be stored, and a retry does not help. */
function isInvalidData(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && /^22.{3}$/.test(error.code)
}
