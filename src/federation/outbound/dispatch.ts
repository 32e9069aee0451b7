import type { Knex } from 'knex'
import { enqueueMessage } from '../../domain/outbound/outgoing-messages.js'
import type { OutgoingRecord } from '../../jobs/definitions.js'
import { isInOutbox, lockOldestOfSender, takeRows, type Work } from '../../jobs/outbox/outbox.js'
import { LOOKUP_LIMITS } from '../../limits.js'
import { inTransaction } from '../../persistence/database/errors.js'
import type { Pod } from '../../pod/pod.js'
import type { Entity } from '../../protocol/entities/registry.js'
import { lookForLinked, textOf } from '../discovery/find-links.js'
import { isElsewhere } from '../discovery/pod-location.js'
import { outgoingOf } from './find-outgoing.js'
import { lookForNamed } from './late-mentions.js'

type DispatchWork = Work & { readonly data: OutgoingRecord }

/**
 * Writes one envelope for a record and a delivery for everybody who has to have it; a job that comes twice writes nothing. What
 * the same person has written before and no job has dispatched yet goes first.
 */
export async function dispatch(pod: Pod, work: DispatchWork): Promise<void> {
  const { senderId, outboxId } = work
  if (senderId === undefined || outboxId === undefined) {
    await inTransaction(pod.db, async (transaction) => {
      await work.finish(transaction)
      await dispatchRecord(pod, transaction, work.data)
    })
    return
  }
  const failed: number[] = []
  for (;;) {
    const next = await dispatchOldest(pod, work, { senderId, outboxId, failed })
    if (next === 'own') return
    if (next === 'none' && !(await isInOutbox(pod.db, outboxId))) return
  }
}

interface Position {
  readonly senderId: number
  readonly outboxId: number
  /** Rows of earlier records that could not be dispatched: their own jobs try again. */
  readonly failed: number[]
}

async function dispatchOldest(
  pod: Pod,
  work: DispatchWork,
  { senderId, outboxId, failed }: Position,
): Promise<'own' | 'earlier' | 'none'> {
  let earlier: number | undefined
  try {
    return await inTransaction(pod.db, async (transaction) => {
      earlier = undefined
      const oldest = await lockOldestOfSender(transaction, senderId, outboxId, failed)
      if (oldest === undefined) return 'none'
      if (oldest.id === outboxId) {
        await work.finish(transaction)
        await dispatchRecord(pod, transaction, work.data)
        return 'own'
      }
      earlier = oldest.id
      await takeRows(transaction, [oldest.id])
      await dispatchRecord(pod, transaction, oldest.data)
      return 'earlier'
    })
  } catch (error) {
    if (earlier === undefined) throw error
    failed.push(earlier)
    return 'earlier'
  }
}

async function dispatchRecord(pod: Pod, transaction: Knex.Transaction, record: OutgoingRecord): Promise<void> {
  const outgoing = await outgoingOf(pod, transaction, record)
  if (outgoing === undefined) return
  await lookForNamed(pod, transaction, outgoing)
  await lookForLinked(pod, transaction, [
    { text: ownTextOf(pod, outgoing.message.entity), depth: 0, fetchesLeft: LOOKUP_LIMITS.fetchesOfMessage },
  ])
  await enqueueMessage(pod, transaction, outgoing.message, outgoing.audience)
}

/** What is only passed on was looked at when it came. */
function ownTextOf(pod: Pod, entity: Entity): string {
  return 'author' in entity && isElsewhere(pod, entity.author) ? '' : textOf(entity)
}
