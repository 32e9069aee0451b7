import type { Knex } from 'knex'
import { enqueueJobs, type NewJob } from '../../jobs/outbox/enqueue-jobs.js'
import {
  type InsertedRow,
  insertConversationMessages,
  type NewConversationMessage,
} from '../../persistence/inbound/insert-conversations.js'
import type { Services } from '../../services/services.js'
import { newLiveEventAndMailJobs } from '../notifications/enqueue-live-events.js'

/** Inserts local or received messages, and enqueues their live events with further jobs. Returns the new rows. */
export async function addConversationMessages(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly NewConversationMessage[],
  also: readonly NewJob[] = [],
): Promise<readonly InsertedRow[]> {
  const insertedRows = await insertConversationMessages(transaction, messages)
  await enqueueJobs(services, transaction, [
    ...also,
    ...newLiveEventAndMailJobs(services, { messages: insertedRows.map(({ id }) => id) }),
  ])
  return insertedRows
}
