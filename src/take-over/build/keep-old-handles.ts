import type { KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { Elements } from '../../protocol/entities/relayables.js'
import { signedText } from '../../protocol/signatures/relayable-signature.js'
import { readPublicKey, verifyRsaSha256 } from '../../protocol/signatures/rsa.js'

const BATCH_SIZE = 500

interface SignedRow {
  readonly id: number
  readonly signature: string
  readonly elements: Elements
  readonly publicKey: string
  readonly oldHandles: readonly { readonly handle: string; readonly publicKey: string }[]
}

/**
 * Restores the author in the signed elements of people who have moved: the old pod has replaced the author of their comments, likes and
 * votes, while the signature contains the old handle. Signatures that verify with neither stay as they are.
 */
export async function keepOldHandles(session: pg.Client): Promise<void> {
  for (const table of ['comments', 'likes', 'poll_participations'] as const) {
    await session.query(
      `create unlogged table take_over.map_signed_${table} (id bigint primary key, elements jsonb not null)`,
    )
    await session.query(`declare moved no scroll cursor for ${movedRowsSql(table)}`)
    for (;;) {
      const { rows } = await session.query<SignedRow>(`fetch ${BATCH_SIZE} from moved`)
      if (rows.length === 0) break
      const signedRows = rows.flatMap((row) => {
        const elements = elementsThatVerify(row)
        return elements === undefined ? [] : [{ id: row.id, elements }]
      })
      await session.query(`insert into take_over.map_signed_${table} select * from unnest($1::bigint[], $2::jsonb[])`, [
        signedRows.map(({ id }) => id),
        signedRows.map(({ elements }) => JSON.stringify(elements)),
      ])
    }
    await session.query('close moved')
    await session.query(
      `update ${table} set signed_elements = restored.elements from take_over.map_signed_${table} as restored
       where restored.id = ${table}.id`,
    )
  }
}

/** Selects the rows of people who have moved. It scans the table, because its indexes are made last. */
function movedRowsSql(table: string): string {
  return `
    with recursive moves(new_id, old_id) as (
      select new_person_id, old_person_id from account_migrations where old_person_id is not null
      union select moves.new_id, earlier.old_person_id from moves
      join account_migrations as earlier on earlier.new_person_id = moves.old_id and earlier.old_person_id is not null
    ), old_handles as (
      select moves.new_id, jsonb_agg(jsonb_build_object('handle', diaspora_handle, 'publicKey', serialized_public_key)) as "oldHandles"
      from moves join take_over.people as old on old.id = moves.old_id group by moves.new_id
    )
    select ${table}.id::float as id, author_signature as signature, signed_elements as elements, people.public_key as "publicKey", "oldHandles"
    from ${table} join old_handles on old_handles.new_id = ${table}.author_id join people on people.id = ${table}.author_id
    where author_signature is not null`
}

/** Undefined: those of the row verify already, or none do. */
function elementsThatVerify({ signature, elements, publicKey, oldHandles }: SignedRow): Elements | undefined {
  const bytes = Buffer.from(signature, 'base64')
  const isSignedWith = (given: Elements, pem: string) => {
    const key = keyOf(pem)
    return key !== undefined && verifyRsaSha256(Buffer.from(signedText(given)), key, bytes)
  }
  if (isSignedWith(elements, publicKey)) return undefined
  for (const old of oldHandles) {
    const restoredElements = elements.map(([name, text]) => [name, isAuthor(name) ? old.handle : text] as const)
    if (isSignedWith(restoredElements, old.publicKey) || isSignedWith(restoredElements, publicKey))
      return restoredElements
  }
  return undefined
}

function isAuthor(name: string): boolean {
  return name === 'author' || name === 'diaspora_handle'
}

const keys = new Map<string, KeyObject | undefined>()
const KEYS_CACHED = 1_000

function keyOf(pem: string): KeyObject | undefined {
  if (keys.size > KEYS_CACHED) keys.clear()
  if (!keys.has(pem)) keys.set(pem, readPublicKey(pem))
  return keys.get(pem)
}
