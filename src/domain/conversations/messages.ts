import type { Knex } from 'knex'
import { enqueueJobs, type NewJob } from '../../jobs/outbox/outbox.js'
import {
  type ArrivedMessage,
  type InsertedRow,
  insertNewMessages,
} from '../../persistence/inbound/insert-conversations.js'
import type { Pod } from '../../pod/pod.js'
import { newAnnouncementJobs } from '../notifications/announcements.js'

/** Inserts local or received messages, and enqueues their announcements with further jobs. Returns the new rows. */
export async function addMessages(
  pod: Pick<Pod, 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  messages: readonly ArrivedMessage[],
  also: readonly NewJob[] = [],
): Promise<readonly InsertedRow[]> {
  const insertedRows = await insertNewMessages(transaction, messages)
  await enqueueJobs(pod, transaction, [
    ...also,
    ...newAnnouncementJobs(pod, { messages: insertedRows.map(({ id }) => id) }),
  ])
  return insertedRows
}
