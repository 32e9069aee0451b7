import type { KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { Elements } from '../../protocol/entities/relayables.js'
import { signedText } from '../../protocol/signatures/relayable-signature.js'
import { readPublicKey, verifyRsaSha256 } from '../../protocol/signatures/rsa.js'

export interface SignatureCount {
  readonly table: string
  /** The names of the signed elements. */
  readonly order: string
  readonly verified: number
  /** Signatures that are valid for the handle and key that the author had before moving. */
  readonly byOldHandle: number
  readonly notVerified: number
}

const SAMPLE = 1_000
const BATCH_SIZE = 500

interface SignedRow {
  readonly order: string
  readonly signature: string
  readonly elements: Elements
  readonly address: string
  readonly publicKey: string
  /** Key of the person whom the elements name as the author. */
  readonly claimedKey: string | null
}

/** Verifies the signatures of remote authors: all, or the same sample of each table and order of elements at each run. */
export async function countSignatures(
  session: pg.Client,
  { shouldVerifyAllSignatures, signal }: { readonly shouldVerifyAllSignatures: boolean; readonly signal: AbortSignal },
): Promise<readonly SignatureCount[]> {
  const counts = new Map<string, SignatureCount>()
  for (const table of ['comments', 'likes', 'poll_participations'] as const) {
    const keys = new Map<string, KeyObject | undefined>()
    const limit = shouldVerifyAllSignatures ? Number.MAX_SAFE_INTEGER : SAMPLE
    await session.query('begin')
    try {
      await session.query(`declare signed_rows no scroll cursor for ${signedRowsSql(table, limit)}`)
      for (;;) {
        signal.throwIfAborted()
        const { rows } = await session.query<SignedRow>(`fetch ${BATCH_SIZE} from signed_rows`)
        if (rows.length === 0) break
        for (const row of rows) count(counts, table, row, keys)
      }
    } finally {
      await session.query('rollback')
    }
  }
  return [...counts.values()]
}

function count(
  counts: Map<string, SignatureCount>,
  table: string,
  { order, signature, elements, address, publicKey, claimedKey }: SignedRow,
  keys: Map<string, KeyObject | undefined>,
): void {
  const name = `${table} ${order}`
  const old = counts.get(name) ?? { table, order, verified: 0, byOldHandle: 0, notVerified: 0 }
  const text = Buffer.from(signedText(elements))
  const isSignedWith = (pem: string | null) => {
    if (pem === null) return false
    if (!keys.has(pem)) keys.set(pem, readPublicKey(pem))
    const key = keys.get(pem)
    return key !== undefined && verifyRsaSha256(text, key, Buffer.from(signature, 'base64'))
  }
  const [, author = ''] = elements.find(([element]) => element === 'author' || element === 'diaspora_handle') ?? []
  const hasMoved = author !== '' && author.toLowerCase() !== address
  const isVerified = isSignedWith(publicKey) || (hasMoved && isSignedWith(claimedKey))
  const field = !isVerified ? 'notVerified' : hasMoved ? 'byOldHandle' : 'verified'
  counts.set(name, { ...old, [field]: old[field] + 1 })
}

function signedRowsSql(table: 'comments' | 'likes' | 'poll_participations', limit: number): string {
  const name = table.slice(0, -1)
  return `
    select orders."order", ${table}.author_signature as signature, ${table}.signed_elements as elements, people.address,
      people.public_key as "publicKey", claimed.public_key as "claimedKey"
    from (
      select ${name}_id as id, signature_order_id,
        row_number() over (partition by signature_order_id order by md5(${name}_id::text)) as number
      from take_over.${name}_signatures
    ) as source
    join take_over.signature_orders as orders on orders.id = source.signature_order_id
    join ${table} on ${table}.id = source.id and ${table}.author_signature is not null
    join people on people.id = ${table}.author_id
    left join people as claimed on claimed.address = (
      select lower(element ->> 1) from jsonb_array_elements(${table}.signed_elements) as element
      where element ->> 0 in ('author', 'diaspora_handle') limit 1
    ) and claimed.id <> people.id
    where source.number <= ${limit}`
}
