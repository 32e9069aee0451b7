import type { Knex } from 'knex'
import { storeMessage } from '../../domain/outbound/outgoing-messages.js'
import { dispatchJob, type OutgoingRecord } from '../../jobs/definitions.js'
import { requireKnownVersion } from '../../jobs/job-version.js'
import { deleteOutboxRows, isInOutbox, type JobContext } from '../../jobs/outbox/load-job.js'
import { lockOldestOfSender } from '../../jobs/outbox/sender-rows.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { inRequestTransaction, setTrace } from '../../persistence/database/transactions.js'
import { type Entity, readLinkedText } from '../../protocol/entities/registry.js'
import type { Services } from '../../services/services.js'
import { enqueueLinkedFetches } from '../discovery/linked-entities.js'
import { isRemoteAddress } from '../discovery/pod-location.js'
import { planDispatch } from './dispatch-plan.js'
import { attachMentionedPeople } from './mentioned-recipients.js'

type DispatchWork = JobContext & { readonly data: OutgoingRecord }

/**
 * Writes one outbound message for a record, and a delivery for each recipient. A repeated job writes nothing. Earlier records of
 * the same person that no job has dispatched yet are dispatched first.
 */
export async function dispatchInOrder(services: Services, work: DispatchWork): Promise<void> {
  const { senderId, outboxId } = work
  if (senderId === undefined || outboxId === undefined) {
    await inRequestTransaction(services, async (transaction) => {
      await work.finish(transaction)
      await dispatchRecord(services, transaction, work.data)
    })
    return
  }
  const failed: number[] = []
  for (;;) {
    const dispatchedWork = await dispatchOldest(services, work, { senderId, outboxId, failed })
    if (dispatchedWork === 'own') return
    if (dispatchedWork === 'none' && !(await isInOutbox(services.db, outboxId))) return
  }
}

interface SenderQueue {
  readonly senderId: number
  readonly outboxId: number
  /** Outbox rows of earlier records whose dispatch failed, or needs a newer version. Their own jobs retry them. */
  readonly failed: number[]
}

async function dispatchOldest(
  services: Services,
  work: DispatchWork,
  { senderId, outboxId, failed }: SenderQueue,
): Promise<'own' | 'earlier' | 'none'> {
  let earlierId: number | undefined
  try {
    return await inRequestTransaction(services, async (transaction) => {
      earlierId = undefined
      const oldest = await lockOldestOfSender(transaction, senderId, outboxId, failed)
      if (oldest === undefined) return 'none'
      if (oldest.id === outboxId) {
        await work.finish(transaction)
        await dispatchRecord(services, transaction, work.data)
        return 'own'
      }
      earlierId = oldest.id
      requireKnownVersion(services.jobs.versionOf(dispatchJob), oldest.data)
      setTrace(transaction, oldest.trace ?? undefined)
      await deleteOutboxRows(transaction, [oldest.id])
      await dispatchRecord(services, transaction, oldest.data)
      return 'earlier'
    })
  } catch (error) {
    if (earlierId === undefined) throw error
    failed.push(earlierId)
    return 'earlier'
  }
}

async function dispatchRecord(
  services: Services,
  transaction: Knex.Transaction,
  record: OutgoingRecord,
): Promise<void> {
  const plan = await planDispatch(services, transaction, record)
  if (plan === undefined) return
  await attachMentionedPeople(services, transaction, plan)
  await enqueueLinkedFetches(services, transaction, [
    { text: ownTextOf(services, plan.message.entity), depth: 0, fetchesLeft: REFERENCE_LIMITS.fetchesOfMessage },
  ])
  await storeMessage(services, transaction, plan.message, plan.recipients)
}

/** Empty for a relayed text: its links were fetched when it arrived. */
function ownTextOf(services: Services, entity: Entity): string {
  return 'author' in entity && isRemoteAddress(services, entity.author) ? '' : readLinkedText(entity)
}
