import type { Knex } from 'knex'
import { announceJob, noticesJob, type OutgoingRecord } from '../../jobs/definitions.js'
import { enqueueJobs, type NewJob, newDispatchJob, newJob } from '../../jobs/outbox/outbox.js'
import { channelSignal } from '../../jobs/signals.js'
import { type AnnouncedRows, insertAnnouncements } from '../../persistence/notifications/announcements.js'
import type { Pod } from '../../pod/pod.js'
import { MAIL_LIMITS } from '../mail/limits.js'

/** Enqueues the announcement of rows that this transaction has written, for live event streams. */
export async function enqueueAnnouncement(
  pod: Pick<Pod, 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  news: AnnouncedRows,
): Promise<void> {
  await enqueueJobs(pod, transaction, newAnnouncementJobs(pod, news))
}

/** Enqueues the dispatch of a record to other pods and the announcement of rows, with one statement. */
export async function enqueueDispatchAndAnnouncement(
  pod: Pick<Pod, 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  senderId: number,
  record: OutgoingRecord,
  news: AnnouncedRows,
): Promise<void> {
  await enqueueJobs(pod, transaction, [newDispatchJob(senderId, record), ...newAnnouncementJobs(pod, news)])
}

/** No job if there are no rows. */
export function newAnnouncementJobs({ config }: Pick<Pod, 'config'>, news: AnnouncedRows): readonly NewJob[] {
  if (!Object.values(news).some((ids) => ids.length > 0)) return []
  const { notifications = [], messages = [] } = news
  const isMailed = config.mail !== undefined && notifications.length + messages.length > 0
  const notices = { ...newJob(noticesJob, { notifications, messages }), dueInSeconds: MAIL_LIMITS.noticeDelaySeconds }
  return [newJob(announceJob, news), ...(isMailed ? [notices] : [])]
}

/**
 * Inserts the announcements of outbox rows and signals the web processes, which send them to live event streams, with one statement.
 * Rows that are gone have been published.
 */
export async function publishAnnouncements({ db }: Pick<Pod, 'db'>, outboxIds: readonly number[]): Promise<void> {
  await insertAnnouncements(db, outboxIds, channelSignal('announced'))
}
