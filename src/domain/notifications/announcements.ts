import type { Knex } from 'knex'
import { announceJob, type OutgoingRecord } from '../../jobs/definitions.js'
import { enqueueJobs, type NewJob, newDispatchJob, newJob, type Work } from '../../jobs/outbox/outbox.js'
import { giveSignal } from '../../jobs/signals.js'
import { inTransaction } from '../../persistence/database/errors.js'
import { type AnnouncedRows, insertAnnouncements } from '../../persistence/notifications/announcements.js'
import type { Pod } from '../../pod/pod.js'

/** Lets those who listen know of what this transaction has written. */
export async function enqueueAnnouncement(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  news: AnnouncedRows,
): Promise<void> {
  await enqueueJobs(pod, transaction, newAnnouncementJobs(news))
}

/** The same together with what other pods are to be told. */
export async function enqueueDispatchAndAnnouncement(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  senderId: number,
  record: OutgoingRecord,
  news: AnnouncedRows,
): Promise<void> {
  await enqueueJobs(pod, transaction, [newDispatchJob(senderId, record), ...newAnnouncementJobs(news)])
}

/** None where nothing is new. */
export function newAnnouncementJobs(news: AnnouncedRows): readonly NewJob[] {
  return Object.values(news).some((ids) => ids.length > 0) ? [newJob(announceJob, news)] : []
}

/** Carries what is new to the web processes, and through them out of the pod. */
export async function publishAnnouncements(
  pod: Pick<Pod, 'db'>,
  work: Work & { readonly data: AnnouncedRows },
): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    // First: whoever finds that it is done already must not have made others wait for a turn.
    await work.finish(transaction)
    const announcements = await insertAnnouncements(transaction, work.data)
    if (announcements > 0) await giveSignal(transaction, 'announced')
  })
}
