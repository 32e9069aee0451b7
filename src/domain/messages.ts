import type { Knex } from 'knex'
import { type ArrivedMessage, insertNewMessages, type NewRow } from '../persistence/arrived-conversations.js'
import type { Pod } from '../pod.js'
import { announceWith } from './announce.js'

/** Adds to conversations what somebody has said in them, here or elsewhere; returns what is really new. */
export async function addMessages(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly ArrivedMessage[],
): Promise<readonly NewRow[]> {
  const written = await insertNewMessages(transaction, messages)
  await announceWith(pod, transaction, { messages: written.map(({ id }) => id) })
  return written
}
