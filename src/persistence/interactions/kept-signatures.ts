import type { Knex } from 'knex'
import type { RelayableKind } from '../../protocol/entities/registry.js'
import type { SignedElements } from '../models/comment.js'
import { RECORD_TABLES } from '../sql/record-tables.js'

/** Keeps the signature of a relayable, and the texts that it covers, unless there is one. */
export async function storeSignature(
  db: Knex,
  kind: RelayableKind,
  guid: string,
  { signature, elements }: { readonly signature: string; readonly elements: SignedElements },
): Promise<void> {
  await db(RECORD_TABLES[kind].table)
    .where({ guid })
    .whereNull('authorSignature')
    .update({ authorSignature: signature, signedElements: JSON.stringify(elements) })
}
