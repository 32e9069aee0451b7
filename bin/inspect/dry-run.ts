import type { Knex } from 'knex'
import { authorise } from '../../src/federation/inbound/authorise.js'
import type {
  Arrival,
  IgnoredMessage,
  InboundMessage,
  RejectedMessage,
  WaitingMessage,
} from '../../src/federation/inbound/batch.js'
import { openEnvelopes } from '../../src/federation/inbound/open-envelopes.js'
import { receiveBatch } from '../../src/federation/inbound/receive-batch.js'
import { type ResolvedArrival, resolveReferences } from '../../src/federation/inbound/resolve-references.js'
import { inTransaction } from '../../src/persistence/database/transactions.js'
import type { Pod } from '../../src/pod/pod.js'
import { beginCounting, type Effects } from './effects.js'

export type StepName = 'open' | 'resolve' | 'authorise' | 'store'

/** How far one message came, and what it would have changed. */
export interface DryRun {
  /** The step that let it go no further; undefined: it went through all of them. */
  readonly stoppedAt: StepName | undefined
  readonly arrival: Arrival | undefined
  readonly resolved: ResolvedArrival | undefined
  /** One of these at most. */
  readonly rejected: RejectedMessage | undefined
  readonly ignored: IgnoredMessage | undefined
  readonly waiting: WaitingMessage | undefined
  readonly effects: Effects
}

/** Does with a message all that is done with one that comes in, and takes everything back: nothing stays, and nothing leaves. */
export async function dryRun(pod: Pod, message: InboundMessage): Promise<DryRun> {
  try {
    return await inTransaction(pod, async (transaction) => {
      // What others commit meanwhile must not look like an effect of the message.
      await transaction.raw('set transaction isolation level repeatable read')
      throw new Undone(await walk({ ...pod, db: transaction }, transaction, message))
    })
  } catch (error) {
    if (error instanceof Undone) return error.result
    throw error
  }
}

/** The way back out of a transaction that must not be kept. */
class Undone extends Error {
  override name = 'Undone'
  readonly result: DryRun

  constructor(result: DryRun) {
    super('This was a dry run.')
    this.result = result
  }
}

/** The steps that only look are taken one by one first, to see what each of them finds. */
async function walk(pod: Pod, transaction: Knex.Transaction, message: InboundMessage): Promise<DryRun> {
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

interface Looked {
  readonly ready: readonly unknown[]
}

function stepThatStopped(steps: Readonly<Record<'opened' | 'resolved' | 'authorised', Looked>>): StepName | undefined {
  if (steps.opened.ready.length === 0) return 'open'
  if (steps.resolved.ready.length === 0) return 'resolve'
  return steps.authorised.ready.length === 0 ? 'authorise' : undefined
}
