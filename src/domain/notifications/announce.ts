import type { Knex } from 'knex'
import { announceJob, type OutgoingRecord } from '../../jobs/definitions.js'
import { enqueueEachWith, type ToDo, toDispatch, toDo, type Work } from '../../jobs/outbox/outbox.js'
import { giveSignal } from '../../jobs/signals.js'
import { inTransaction } from '../../persistence/database/errors.js'
import { insertAnnouncements, type News } from '../../persistence/notifications/announcements.js'
import type { Pod } from '../../pod/pod.js'

/** Lets those who listen know of what this transaction has written. */
export async function announceWith(pod: Pick<Pod, 'jobs'>, transaction: Knex.Transaction, news: News): Promise<void> {
  await enqueueEachWith(pod, transaction, announcement(news))
}

/** The same together with what other pods are to be told. */
export async function dispatchAndAnnounce(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  senderId: number,
  record: OutgoingRecord,
  news: News,
): Promise<void> {
  await enqueueEachWith(pod, transaction, [toDispatch(senderId, record), ...announcement(news)])
}

/** None where nothing is new. */
export function announcement(news: News): readonly ToDo[] {
  return Object.values(news).some((ids) => ids.length > 0) ? [toDo(announceJob, news)] : []
}

/** Carries what is new to the web processes, and through them out of the pod. */
export async function announce(pod: Pick<Pod, 'db'>, work: Work & { readonly data: News }): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    // First: whoever finds that it is done already must not have made others wait for a turn.
    await work.finish(transaction)
    const announcements = await insertAnnouncements(transaction, work.data)
    if (announcements > 0) await giveSignal(transaction, 'announced')
  })
}
