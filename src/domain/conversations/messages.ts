import type { Knex } from 'knex'
import { enqueueJobs, type NewJob } from '../../jobs/outbox/outbox.js'
import {
  type ArrivedMessage,
  type InsertedRow,
  insertNewMessages,
} from '../../persistence/inbound/insert-conversations.js'
import type { Pod } from '../../pod/pod.js'
import { newAnnouncementJobs } from '../notifications/announcements.js'

/** Adds to conversations what somebody has said in them, here or elsewhere, with what else is to do; returns what is really new. */
export async function addMessages(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly ArrivedMessage[],
  also: readonly NewJob[] = [],
): Promise<readonly InsertedRow[]> {
  const written = await insertNewMessages(transaction, messages)
  await enqueueJobs(pod, transaction, [...also, ...newAnnouncementJobs({ messages: written.map(({ id }) => id) })])
  return written
}
