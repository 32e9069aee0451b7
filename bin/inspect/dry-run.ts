import type { Knex } from 'knex'
import { authorise } from '../../src/federation/inbound/authorise.js'
import type {
  Arrival,
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  ResolvedArrival,
  WaitingMessage,
} from '../../src/federation/inbound/batch.js'
import { openEnvelopes } from '../../src/federation/inbound/open-envelopes.js'
import { receiveBatch } from '../../src/federation/inbound/receive-batch.js'
import { resolveReferences } from '../../src/federation/inbound/resolve-references.js'
import { inTransaction } from '../../src/persistence/database/transactions.js'
import type { Pod } from '../../src/pod/pod.js'
import { beginCounting, type Effects } from './effects.js'

export type StepName = 'open' | 'resolve' | 'authorise' | 'store'

/** The steps that one message passed, and its effects. */
export interface EnvelopeDryRun {
  /** The step that stopped the message. Undefined: it passed all steps. */
  readonly stoppedAt: StepName | undefined
  readonly arrival: Arrival | undefined
  readonly resolved: ResolvedArrival | undefined
  /** At most one of the next three is set. */
  readonly rejected: RejectedMessage | undefined
  readonly ignored: IgnoredMessage | undefined
  readonly waiting: WaitingMessage | undefined
  readonly effects: Effects
}

/** Receives a message in a transaction that is rolled back. No row is kept and nothing is sent. */
export async function dryRun(pod: Pod, message: InboundMessage): Promise<EnvelopeDryRun> {
  try {
    return await inTransaction(pod, async (transaction) => {
      // Concurrent commits must not count as effects of the message.
      await transaction.raw('set transaction isolation level repeatable read')
      throw new RolledBack(await runSteps({ ...pod, db: transaction }, transaction, message))
    })
  } catch (error) {
    if (error instanceof RolledBack) return error.result
    throw error
  }
}

/** Rolls the transaction back and carries the result. */
class RolledBack extends Error {
  override name = 'RolledBack'
  readonly result: EnvelopeDryRun

  constructor(result: EnvelopeDryRun) {
    super('This was a dry run.')
    this.result = result
  }
}

/** Runs the read-only steps first, to report the result of each. */
async function runSteps(pod: Pod, transaction: Knex.Transaction, message: InboundMessage): Promise<EnvelopeDryRun> {
  const effects = await beginCounting(transaction)
  const opened = await openEnvelopes(pod, [message])
  const resolved = await resolveReferences(pod, opened.ready)
  const authorised = authorise(resolved.ready)
  const end = await receiveBatch(pod, [message])

  const [rejected, ignored, waiting] = [end.rejected[0], end.ignored[0], end.waiting[0]]
  return {
    stoppedAt: stepThatStopped({ opened, resolved, authorised }) ?? (rejected || ignored ? 'store' : undefined),
    arrival: opened.ready[0] ?? rejected?.arrival,
    resolved: resolved.ready[0],
    rejected,
    ignored,
    waiting,
    effects: await effects(),
  }
}

interface StepOutput {
  readonly ready: readonly unknown[]
}

function stepThatStopped(
  steps: Readonly<Record<'opened' | 'resolved' | 'authorised', StepOutput>>,
): StepName | undefined {
  if (steps.opened.ready.length === 0) return 'open'
  if (steps.resolved.ready.length === 0) return 'resolve'
  return steps.authorised.ready.length === 0 ? 'authorise' : undefined
}
