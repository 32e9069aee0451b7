import type { Knex } from 'knex'
import type { SignedElements } from '../models/comment.js'

/** Keeps the signature of a relayable, and the texts that it covers, unless there is one. */
export async function storeSignature(
  db: Knex,
  table: 'comments' | 'likes' | 'poll_participations',
  guid: string,
  { signature, elements }: { readonly signature: string; readonly elements: SignedElements },
): Promise<void> {
  await db(table)
    .where({ guid })
    .whereNull('authorSignature')
    .update({ authorSignature: signature, signedElements: JSON.stringify(elements) })
}
