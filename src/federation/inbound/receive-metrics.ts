import { Counter, Histogram, type Registry } from 'prom-client'
import { inChildSpan } from '../../services/in-span.js'
import type { ActiveSpan } from '../../services/tracer.js'
import type { IgnoredMessage, InboundMessage, RejectedMessage, WaitingMessage } from './batch.js'

/** The messages of a batch by their outcomes. */
export interface BatchOutcomes {
  /** Number of messages that have stored or changed a row. */
  readonly stored: number
  readonly waiting: readonly WaitingMessage[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  readonly givenUp: readonly WaitingMessage[]
}

const messagesTotal = new Counter({
  name: 'pod_inbound_messages_total',
  help: 'Inbound messages, by queue, end and fault.',
  labelNames: ['queue', 'end', 'fault'],
  registers: [],
})
const batchSizes = new Histogram({
  name: 'pod_inbound_batch_messages',
  help: 'Messages in one inbound batch.',
  buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
  registers: [],
})
const stepSeconds = new Histogram({
  name: 'pod_inbound_step_seconds',
  help: 'Duration of one step of an inbound batch.',
  labelNames: ['step'],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  registers: [],
})

const commitSeconds = new Histogram({
  name: 'pod_accept_to_commit_seconds',
  help: 'Time from the 202 of a message to the commit of its batch; a resumed message counts from its 202 too.',
  labelNames: ['channel'],
  buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 21_600],
  registers: [],
})

const unforwardedTotal = new Counter({
  name: 'pod_unforwarded_messages_total',
  help: 'Late comments, likes and votes for accounts that have moved away, beyond the daily number that is forwarded for a pod.',
  registers: [],
})

/** Adds the metrics of inbound messages to a registry. */
export function registerReceiveMetrics(registry: Registry): void {
  registry.registerMetric(messagesTotal)
  registry.registerMetric(batchSizes)
  registry.registerMetric(stepSeconds)
  registry.registerMetric(commitSeconds)
  registry.registerMetric(unforwardedTotal)
}

export function countUnforwarded(messages: number): void {
  unforwardedTotal.inc(messages)
}

/** Runs a step and records its duration, even if it throws. The step is a span of its batch. */
export async function timeStep<Result>(
  step: 'open' | 'resolve' | 'store',
  span: ActiveSpan | undefined,
  run: () => Promise<Result>,
): Promise<Result> {
  const stopTimer = stepSeconds.startTimer({ step })
  try {
    return await inChildSpan(span, step, run)
  } finally {
    stopTimer()
  }
}

export function countBatch(messages: readonly InboundMessage[], outcomes: BatchOutcomes): void {
  const [first] = messages
  if (first === undefined) return
  const queue = queueLabel(first)
  batchSizes.observe(messages.length)
  const now = Date.now()
  for (const { acceptedAt, fetchRequest, recipientGuid } of messages) {
    const channel = recipientGuid === undefined ? 'public' : 'private'
    if (fetchRequest === undefined) commitSeconds.observe({ channel }, Math.max(0, now - acceptedAt.getTime()) / 1_000)
  }
  const { stored, waiting, rejected, ignored, givenUp } = outcomes
  const { repeated } = countOutcomes(messages, outcomes)
  // Dashboards and alerts of operators use the values of the label `end`, so a changed value is a line in CHANGELOG.
  messagesTotal.inc({ queue, end: 'stored' }, stored)
  if (repeated > 0) messagesTotal.inc({ queue, end: 'repeated' }, repeated)
  if (ignored.length > 0) messagesTotal.inc({ queue, end: 'ignored' }, ignored.length)
  for (const { fault } of waiting) messagesTotal.inc({ queue, end: 'waiting', fault })
  for (const { fault } of rejected) messagesTotal.inc({ queue, end: 'rejected', fault })
  for (const { fault } of givenUp) messagesTotal.inc({ queue, end: 'dead', fault })
}

/** The counts by the names that the log line uses. Repeated messages are those without any other end. */
export function countOutcomes(
  messages: readonly InboundMessage[],
  { stored, waiting, rejected, ignored, givenUp }: BatchOutcomes,
) {
  const counts = {
    stored,
    waiting: waiting.length,
    rejected: rejected.length,
    ignored: ignored.length,
    dead: givenUp.length,
  }
  const endedMessages = Object.values(counts).reduce((sum, count) => sum + count, 0)
  return { ...counts, repeated: messages.length - endedMessages }
}

export function queueLabel({ fetchRequest, recipientGuid }: InboundMessage): string {
  if (fetchRequest !== undefined) return 'fetch'
  return recipientGuid === undefined ? 'inbound' : 'inbound-private'
}
