import type { Logger } from 'pino'
import { Counter, Histogram, type Registry } from 'prom-client'
import type { IgnoredMessage, InboundMessage, RejectedMessage, WaitingMessage } from './batch.js'

/** What became of a batch. */
export interface BatchEnds {
  /** How many of its messages brought something new. */
  readonly stored: number
  readonly waiting: readonly WaitingMessage[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  readonly givenUp: readonly WaitingMessage[]
}

const messagesTotal = new Counter({
  name: 'pod_inbound_messages_total',
  help: 'Messages taken in, by how they came and what became of them.',
  labelNames: ['queue', 'end', 'fault'],
  registers: [],
})
const batchSizes = new Histogram({
  name: 'pod_inbound_batch_messages',
  help: 'Messages that were taken in together.',
  buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  registers: [],
})
const stepSeconds = new Histogram({
  name: 'pod_inbound_step_seconds',
  help: 'How long a batch was in a step of the way in.',
  labelNames: ['step'],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers: [],
})

const commitSeconds = new Histogram({
  name: 'pod_accept_to_commit_seconds',
  help: 'From the 202 of a message to the commit of its batch; a message that has waited for something counts from its 202 too.',
  labelNames: ['channel'],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 21_600],
  registers: [],
})

/** Shows in this registry what the process knows about its way in. */
export function showReceiveFigures(registry: Registry): void {
  registry.registerMetric(messagesTotal)
  registry.registerMetric(batchSizes)
  registry.registerMetric(stepSeconds)
  registry.registerMetric(commitSeconds)
}

/** Runs a step and notes how long it took, however it ended. */
export async function timed<Result>(step: 'open' | 'resolve' | 'store', run: () => Promise<Result>): Promise<Result> {
  const done = stepSeconds.startTimer({ step })
  try {
    return await run()
  } finally {
    done()
  }
}

export function noteBatch(
  messages: readonly InboundMessage[],
  { stored, waiting, rejected, ignored, givenUp }: BatchEnds,
): void {
  const [first] = messages
  if (first === undefined) return
  const queue = queueOf(first)
  batchSizes.observe(messages.length)
  const now = Date.now()
  for (const { acceptedAt, wanted, recipientGuid } of messages) {
    const channel = recipientGuid === undefined ? 'public' : 'private'
    if (wanted === undefined) commitSeconds.observe({ channel }, Math.max(0, now - acceptedAt.getTime()) / 1_000)
  }
  const { repeated } = countEnds(messages, { stored, waiting, rejected, ignored, givenUp })
  messagesTotal.inc({ queue, end: 'stored' }, stored)
  if (repeated > 0) messagesTotal.inc({ queue, end: 'repeated' }, repeated)
  if (ignored.length > 0) messagesTotal.inc({ queue, end: 'over' }, ignored.length)
  for (const { fault } of waiting) messagesTotal.inc({ queue, end: 'waiting', fault })
  for (const { fault } of rejected) messagesTotal.inc({ queue, end: 'wrong', fault })
  for (const { fault } of givenUp) messagesTotal.inc({ queue, end: 'dead', fault })
}

function countEnds(messages: readonly InboundMessage[], { stored, waiting, rejected, ignored, givenUp }: BatchEnds) {
  const counts = {
    stored,
    waiting: waiting.length,
    rejected: rejected.length,
    ignored: ignored.length,
    dead: givenUp.length,
  }
  const ended = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return { ...counts, repeated: messages.length - ended }
}

/** One line for a batch: how many messages ended how, and how long it took. */
export function logBatch(log: Logger, messages: readonly InboundMessage[], ends: BatchEnds, ms: number): void {
  const [first] = messages
  if (first === undefined) return
  const counts = Object.entries(countEnds(messages, ends)).filter(([, count]) => count > 0)
  log.info(
    { queue: queueOf(first), messages: messages.length, ...Object.fromEntries(counts), ms: Math.round(ms) },
    'inbound batch stored',
  )
}

function queueOf({ wanted, recipientGuid }: InboundMessage): string {
  if (wanted !== undefined) return 'fetch'
  return recipientGuid === undefined ? 'inbound' : 'inbound-private'
}
