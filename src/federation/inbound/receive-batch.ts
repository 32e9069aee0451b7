import { mayWaitAgain } from '../../jobs/waiting/waiting-messages.js'
import type { Pod } from '../../pod/pod.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { authoriseBatch } from './authorise-batch.js'
import type { IgnoredMessage, InboundMessage, RejectedMessage, StepResult, WaitingMessage } from './batch.js'
import { countDailyBytes, withinDailyBytes } from './daily-bytes.js'
import { openBatch } from './open-batch.js'
import { logBatch, noteBatch, timed } from './receive-figures.js'
import { resolveBatch } from './resolve-batch.js'
import { storeBatch } from './store/store-batch.js'

/** What became of those messages that were not stored. */
export interface BatchOutcome extends Omit<StepResult<never>, 'ready'> {
  /** They have waited too often or for too long. Somebody must say so to their job; the row they came by is still there. */
  readonly givenUp: readonly WaitingMessage[]
}

/**
 * Takes messages in, one or many: the steps are the same. Either all of them reach their end, or it throws and none did. Those
 * that wait are parked, but for what we have asked for ourselves: that is handed back to whoever has asked.
 */
export async function receiveBatch(pod: Pod, messages: readonly InboundMessage[]): Promise<BatchOutcome> {
  const began = performance.now()
  const opened = await timed('open', () => openBatch(pod, messages))
  const within = withinDailyBytes(pod, opened.ready)
  const resolved = await timed('resolve', () => resolveBatch(pod, within.ready))
  const authorised = authoriseBatch(resolved.ready)
  const steps = [opened, resolved, authorised]
  const undecided = steps.flatMap((step) => step.waiting)
  const waiting = undecided.filter(({ message: { resumed } }) => resumed === undefined || mayWaitAgain(resumed))
  const givenUp = undecided.filter((each) => !waiting.includes(each))
  const before = {
    waiting,
    rejected: steps.flatMap((step) => step.rejected),
    ignored: [...within.ignored, ...steps.flatMap((step) => step.ignored)],
  }
  // Said before it is so: a worker that dies in between says it twice, and not never.
  tell(pod, before)
  const stored = await timed('store', () => storeBatch(pod, { ...before, ready: authorised.ready }))
  tell(pod, stored)
  await countDailyBytes(
    pod,
    stored.records.map(({ arrival }) => arrival),
  )
  const rejected = [...before.rejected, ...stored.rejected]
  const ignored = [...before.ignored, ...stored.ignored]
  const ends = { stored: stored.records.length, waiting, rejected, ignored, givenUp }
  noteBatch(messages, ends)
  logBatch(pod.log, messages, ends, performance.now() - began)
  return { waiting, rejected, ignored, givenUp }
}

function tell({ log }: Pod, { rejected, ignored }: Pick<BatchOutcome, 'rejected' | 'ignored'>): void {
  for (const one of rejected) log.warn({ fault: one.fault, ...aboutOf(one), reason: one.reason }, 'dropped')
  for (const one of ignored) log.debug({ ...aboutOf(one), reason: one.reason }, 'nothing to do')
}

/** Who and what, never what it says. Of an envelope that could not be opened nobody has proven the sender. */
function aboutOf({ message, arrival }: RejectedMessage | IgnoredMessage): object {
  if (arrival === undefined) return { sender: peekEnvelope(message.envelope).sender }
  const { sender, entity } = arrival
  return { sender, entity: entity.type, guid: 'guid' in entity ? entity.guid : undefined }
}
