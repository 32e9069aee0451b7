import type { Knex } from 'knex'
import type { RelayableKind } from '../../protocol/entities/registry.js'
import { changeRows } from '../database/database.js'
import type { SignedElements } from '../models/comment.js'
import { RECORD_TABLES } from '../sql/record-tables.js'

interface KeptSignature {
  readonly guid: string
  readonly signature: string
  /** The texts that the signature covers. */
  readonly elements: SignedElements
}

/** Keeps the signatures of relayables that have none. */
export async function storeSignatures(
  db: Knex,
  kind: RelayableKind,
  signatures: readonly KeptSignature[],
): Promise<void> {
  if (signatures.length === 0) return
  const { table } = RECORD_TABLES[kind]
  await changeRows(
    db,
    `with given as (
       select * from json_to_recordset(?::json) as given(guid text, signature text, elements jsonb)
     ), locked as (
       select id, signature, elements from ${table} join given using (guid)
       where author_signature is null order by guid for no key update of ${table}
     )
     update ${table} set author_signature = locked.signature, signed_elements = locked.elements
     from locked where ${table}.id = locked.id`,
    [JSON.stringify(signatures)],
  )
}

/** The relayables among these that have no signature. */
export async function findUnsigned(
  db: Knex,
  kind: RelayableKind,
  guids: readonly string[],
): Promise<readonly string[]> {
  if (guids.length === 0) return []
  return db(RECORD_TABLES[kind].table)
    .whereIn('guid', [...guids])
    .whereNull('authorSignature')
    .pluck('guid')
}
