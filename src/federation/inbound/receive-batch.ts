import { inSpan } from '../../services/in-span.js'
import type { Services } from '../../services/services.js'
import type { ActiveSpan, SpanAttributes } from '../../services/tracer.js'
import type { InboundMessage, StepResult, WaitingMessage } from './batch.js'
import { logBatch, logRejectedAndIgnored } from './batch-log.js'
import { commitBatch } from './commit/commit-batch.js'
import { countSenders } from './count-senders.js'
import { countDailyBytes } from './daily-bytes.js'
import { type PreparedBatch, prepareBatch } from './prepare-batch.js'
import { quarantineRejected } from './quarantine.js'
import { type BatchOutcomes, countBatch, countUnforwarded, queueLabel, timeStep } from './receive-metrics.js'

/** The messages of a batch that were not stored. */
export interface UnstoredMessages extends Omit<StepResult<never>, 'ready'> {
  /** Messages that have waited too often or too long. The caller fails their jobs; their outbox rows are still there. */
  readonly givenUp: readonly WaitingMessage[]
}

/**
 * Receives one message or many, with the same steps. If this throws, nothing of the batch is stored.
 * Waiting messages are stored; one that this pod has fetched is only returned, because its fetch job tries again.
 */
export async function receiveBatch(services: Services, messages: readonly InboundMessage[]): Promise<UnstoredMessages> {
  const traces = messages.map(({ trace }) => trace)
  return inSpan(services.tracer, 'inbound batch', { kind: 'consumer', traces, isBatch: true }, async (span) => {
    const began = performance.now()
    const preparedBatch = await prepareBatch(services, messages, span)
    const outcomes = await storePreparedBatch(services, preparedBatch, span)
    reportBatch(services, preparedBatch, outcomes, { span, ms: performance.now() - began })
    const { waiting, rejected, ignored, givenUp } = outcomes
    return { waiting, rejected, ignored, givenUp }
  })
}

/** Commits a prepared batch, then the bytes of its pods and a sample of its rejected messages. Logs rejected and ignored messages. */
export async function storePreparedBatch(
  services: Services,
  { steps, sorted, givenUp }: PreparedBatch,
  span?: ActiveSpan,
): Promise<BatchOutcomes> {
  // Logged before the commit: a worker that dies in between logs these messages twice rather than never.
  logRejectedAndIgnored(services.log, sorted)
  const committedBatch = await timeStep('store', span, () => commitBatch(services, sorted, steps.filter.filtered, span))
  logRejectedAndIgnored(services.log, committedBatch)
  countUnforwarded(committedBatch.unforwarded)
  await countDailyBytes(
    services,
    committedBatch.records.map(({ message }) => message),
  )
  const rejected = [...sorted.rejected, ...committedBatch.rejected]
  await quarantineRejected(services, rejected)
  const ignored = [...sorted.ignored, ...committedBatch.ignored]
  return { stored: committedBatch.records.length, waiting: sorted.waiting, rejected, ignored, givenUp }
}

/** Reports the outcomes of a batch in the metrics, in the counts of the senders, in its span and with one log line. */
function reportBatch(
  services: Services,
  { messages, steps }: PreparedBatch,
  outcomes: BatchOutcomes,
  { span, ms }: { readonly span: ActiveSpan | undefined; readonly ms: number },
): void {
  countBatch(messages, outcomes)
  countSenders(services, steps.open, outcomes.rejected)
  span?.set(describeBatch(messages, outcomes))
  logBatch(services.log, messages, outcomes, ms)
}

function describeBatch(
  messages: readonly InboundMessage[],
  { stored, waiting, rejected, ignored }: BatchOutcomes,
): SpanAttributes {
  const [first] = messages
  const [fault] = rejected
  return {
    ...(first && { queue: queueLabel(first) }),
    ...(fault && { fault: fault.fault }),
    messages: messages.length,
    stored,
    waiting: waiting.length,
    rejected: rejected.length,
    ignored: ignored.length,
  }
}
