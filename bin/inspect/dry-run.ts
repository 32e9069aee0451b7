import type { Knex } from 'knex'
import type {
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  ResolvedMessage,
  VerifiedMessage,
  WaitingMessage,
} from '../../src/federation/inbound/batch.js'
import { type PreparationSteps, prepareBatch } from '../../src/federation/inbound/prepare-batch.js'
import { storePreparedBatch } from '../../src/federation/inbound/receive-batch.js'
import { inRequestTransaction } from '../../src/persistence/database/transactions.js'
import {
  listEffectsSince,
  markEffects,
  type TransactionEffects,
} from '../../src/persistence/operations/transaction-effects.js'
import { type Services, withTransaction } from '../../src/services/services.js'

export const STEPS = ['open', 'limit', 'resolve', 'authorise', 'filter', 'store'] as const satisfies readonly (
  | keyof PreparationSteps
  | 'store'
)[]

export type StepName = (typeof STEPS)[number]

/** The steps that one message passed, and its effects. */
export interface EnvelopeDryRun {
  /** The step that stopped the message. Undefined: it passed all steps. */
  readonly stoppedAt: StepName | undefined
  readonly verified: VerifiedMessage | undefined
  readonly resolved: ResolvedMessage | undefined
  /** The rejected message. At most one of `rejected`, `ignored` and `waiting` is set. */
  readonly rejected: RejectedMessage | undefined
  readonly ignored: IgnoredMessage | undefined
  readonly waiting: WaitingMessage | undefined
  readonly effects: TransactionEffects
}

/** Receives a message in a transaction that is rolled back. No row is kept and nothing is sent. */
export async function dryRun(services: Services, message: InboundMessage): Promise<EnvelopeDryRun> {
  try {
    return await inRequestTransaction(services, async (transaction) => {
      // Concurrent commits must not count as effects of the message.
      await transaction.raw('set transaction isolation level repeatable read')
      throw new RolledBack(await runSteps(withTransaction(services, transaction), transaction, message))
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

async function runSteps(
  services: Services,
  transaction: Knex.Transaction,
  message: InboundMessage,
): Promise<EnvelopeDryRun> {
  const mark = await markEffects(transaction)
  const preparedBatch = await prepareBatch(services, [message])
  const outcomes = await storePreparedBatch(services, preparedBatch)

  const { steps } = preparedBatch
  const [rejected, ignored, waiting] = [outcomes.rejected[0], outcomes.ignored[0], outcomes.waiting[0]]
  return {
    stoppedAt: stepThatStopped(steps) ?? (rejected || ignored ? 'store' : undefined),
    verified: steps.open.ready[0] ?? rejected?.message,
    resolved: steps.resolve.ready[0],
    rejected,
    ignored,
    waiting,
    effects: await listEffectsSince(transaction, mark),
  }
}

/** The first step before the transaction that the message did not pass. */
function stepThatStopped(steps: PreparationSteps): StepName | undefined {
  return STEPS.find((step) => step !== 'store' && steps[step].ready.length === 0)
}
