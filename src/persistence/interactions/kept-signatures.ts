import type { Knex } from 'knex'
import type { RelayableKind } from '../../protocol/entities/registry.js'
import { changeRows, queryRows } from '../database/database.js'
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
export async function findUnsignedRelayables(
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

/** A local account, perhaps one that has moved away. */
export interface LocalWriter {
  readonly id: number
  readonly address: string
}

/**
 * The accounts of this pod that have written relayables, by guid, with one statement: the author; else the account that was noted when it
 * moved away; else, for moves before that was noted, the only one that has moved to the author in the fewest steps. If there are two,
 * nothing shows which of them has written what.
 */
export async function findLocalWriters(
  db: Knex,
  kind: RelayableKind,
  guids: readonly string[],
): Promise<ReadonlyMap<string, LocalWriter>> {
  if (guids.length === 0) return new Map()
  const rows = await queryRows<LocalWriter & { readonly guid: string }>(
    db,
    `with recursive relayables as (
       select guid, author_id, written_by_id from ${RECORD_TABLES[kind].table} where guid = any(?)
     ), step(author_id, id, depth) as (
       select author_id, author_id, 0 from relayables
       union
       select author_id, old_person_id, depth + 1 from step join account_migrations on new_person_id = step.id
       where old_person_id is not null and depth < 100
     ), local_identities as (
       select step.author_id, step.id, depth, rank() over (partition by step.author_id order by depth) as place,
         count(*) over (partition by step.author_id, depth) as of_depth
       from step join people on people.id = step.id and pod_id is null
     )
     select relayables.guid, writer.id, writer.address
     from relayables
     left join local_identities as nearest on nearest.author_id = relayables.author_id and place = 1 and of_depth = 1
     join people as writer on writer.id = case when nearest.depth = 0 then nearest.id else coalesce(written_by_id, nearest.id) end`,
    [[...guids]],
  )
  return new Map(rows.map(({ guid, id, address }) => [guid, { id, address }]))
}
