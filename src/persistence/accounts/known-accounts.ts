import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Whether other pods may know the key of a local account: it has a post, a contact, or a message to another pod. */
export async function isKnownToOtherPods(
  transaction: Knex.Transaction,
  { userId, personId }: { readonly userId: number; readonly personId: number },
): Promise<boolean> {
  const { isKnown } = await queryRow<{ readonly isKnown: boolean }>(transaction, IS_KNOWN_SQL, { userId, personId })
  return isKnown
}

const IS_KNOWN_SQL = `
  select exists (select from posts where author_id = :personId)
    or exists (select from contacts where user_id = :userId or person_id = :personId)
    or exists (select from outbound_messages where sender_id = :personId) as "isKnown"`
