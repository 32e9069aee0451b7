import type { Knex } from 'knex'
import { enqueueEachWith, type ToDo } from '../../jobs/outbox/outbox.js'
import { type ArrivedMessage, insertNewMessages, type NewRow } from '../../persistence/inbound/insert-conversations.js'
import type { Pod } from '../../pod/pod.js'
import { announcement } from '../notifications/announce.js'

/** Adds to conversations what somebody has said in them, here or elsewhere, with what else is to do; returns what is really new. */
export async function addMessages(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly ArrivedMessage[],
  also: readonly ToDo[] = [],
): Promise<readonly NewRow[]> {
  const written = await insertNewMessages(transaction, messages)
  await enqueueEachWith(pod, transaction, [...also, ...announcement({ messages: written.map(({ id }) => id) })])
  return written
}
