import { mayWaitAgain } from '../../jobs/waiting/resume-messages.js'
import type { ReceivableEntity } from '../../protocol/entities/registry.js'
import type { Services } from '../../services/services.js'
import type { ActiveSpan } from '../../services/tracer.js'
import { authorise } from './authorise.js'
import type {
  InboundMessage,
  ResolvedMessage,
  SortedBatch,
  StepResult,
  VerifiedMessage,
  WaitingMessage,
} from './batch.js'
import { ignoreOverDailyBytes } from './daily-bytes.js'
import { type FilterStep, filterMessages } from './filter-messages.js'
import { followMovedAuthors, followMovedRootAuthors } from './moved/moved-authors.js'
import { openEnvelopes } from './open-envelopes.js'
import { timeStep } from './receive-metrics.js'
import { resolveReferences } from './resolve-references.js'

/** The results of the steps before the transaction, in their order. `pod inspect` reports each of them. */
export interface PreparationSteps {
  readonly open: StepResult<VerifiedMessage<ReceivableEntity>>
  /** Messages of pods within their daily bytes. */
  readonly limit: StepResult<VerifiedMessage<ReceivableEntity>>
  readonly resolve: StepResult<ResolvedMessage>
  readonly authorise: StepResult<ResolvedMessage>
  readonly filter: FilterStep
}

export interface PreparedBatch {
  readonly messages: readonly InboundMessage[]
  readonly steps: PreparationSteps
  readonly sorted: SortedBatch
  /** Messages that have waited too often or too long. */
  readonly givenUp: readonly WaitingMessage[]
}

/** Runs the steps that write nothing: opens the envelopes, and decides which entities are stored. */
export async function prepareBatch(
  services: Services,
  messages: readonly InboundMessage[],
  span?: ActiveSpan,
): Promise<PreparedBatch> {
  const open = await timeStep('open', span, () => openEnvelopes(services, messages))
  const withinDailyBytes = ignoreOverDailyBytes(services, open.ready)
  const underNewestIdentity = await followMovedAuthors(services, withinDailyBytes.ready)
  const resolve = await timeStep('resolve', span, () => resolveReferences(services, underNewestIdentity))
  const authoriseStep = authorise(await followMovedRootAuthors(services, resolve.ready))
  const filter = await filterMessages(services, authoriseStep.ready)

  const steps = { open, limit: withinDailyBytes, resolve, authorise: authoriseStep, filter }
  const stepResults = Object.values(steps)
  const unresolvedMessages = stepResults.flatMap((step) => step.waiting)
  const waiting = unresolvedMessages.filter(
    ({ inbound: { resumed } }) => resumed === undefined || mayWaitAgain(resumed),
  )
  return {
    messages,
    steps,
    sorted: {
      ready: filter.ready,
      waiting,
      rejected: stepResults.flatMap((step) => step.rejected),
      ignored: stepResults.flatMap((step) => step.ignored),
    },
    givenUp: unresolvedMessages.filter((waitingMessage) => !waiting.includes(waitingMessage)),
  }
}
