import type { Knex } from 'knex'
import { liveEventJob, notificationMailsJob, type OutgoingRecord } from '../../jobs/definitions.js'
import { enqueueJobs, type NewJob, newDispatchJob, newJob } from '../../jobs/outbox/enqueue-jobs.js'
import { channelSignal } from '../../jobs/signals.js'
import { insertLiveEventSources, type LiveEventRows } from '../../persistence/notifications/live-event-sources.js'
import type { Services } from '../../services/services.js'
import { MAIL_LIMITS } from '../mail/limits.js'

/** Enqueues the live events of rows that this transaction has written, and the mails about them. */
export async function enqueueLiveEventsAndMails(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  rows: LiveEventRows,
): Promise<void> {
  await enqueueJobs(services, transaction, newLiveEventAndMailJobs(services, rows))
}

interface Publication {
  readonly senderId: number
  /** The record that other pods get. */
  readonly record: OutgoingRecord
  /** The rows whose live events local users get. */
  readonly rows: LiveEventRows
}

/** Enqueues the dispatch of a record to other pods and the live events of rows, with one statement. */
export async function enqueuePublication(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  { senderId, record, rows }: Publication,
): Promise<void> {
  await enqueueJobs(services, transaction, [
    newDispatchJob(senderId, record),
    ...newLiveEventAndMailJobs(services, rows),
  ])
}

/** The jobs for the live events of rows, and for mails about them; none if there are no rows. */
export function newLiveEventAndMailJobs({ config }: Pick<Services, 'config'>, rows: LiveEventRows): readonly NewJob[] {
  if (!Object.values(rows).some((ids) => ids.length > 0)) return []
  const { notifications = [], messages = [] } = rows
  const isMailed = config.mail !== undefined && notifications.length + messages.length > 0
  const mails = {
    ...newJob(notificationMailsJob, { notifications, messages }),
    dueInSeconds: MAIL_LIMITS.notificationMailDelaySeconds,
  }
  return [newJob(liveEventJob, rows), ...(isMailed ? [mails] : [])]
}

/**
 * Inserts the sources of live events of outbox rows and signals the web processes, which send them to live event streams, with one statement.
 * Rows that are gone have been published.
 */
export async function publishLiveEvents({ db }: Pick<Services, 'db'>, outboxIds: readonly number[]): Promise<void> {
  await insertLiveEventSources(db, outboxIds, channelSignal('announced'))
}
