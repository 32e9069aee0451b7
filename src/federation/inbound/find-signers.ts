import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import { LOOKUP_LIMITS } from '../../limits.js'
import { Person } from '../../persistence/models/person.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'

/** Somebody who signed, or is said to have signed, and what decides whether their word counts. */
export interface Signer {
  readonly address: string
  readonly local: boolean
  readonly closed: boolean
  /** A signature of theirs was valid before, or they live here. */
  readonly isProven: boolean
  /** The operator blocks their pod, or the pod at the host of their address. */
  readonly blocked: boolean
  /** Their pod does not answer. */
  readonly offline: boolean
  /** Undefined: what is stored cannot be used. */
  readonly key: KeyObject | undefined
}

/** Everybody of these who is known, with one statement. */
export async function findSigners(db: Knex, addresses: readonly string[]): Promise<readonly Signer[]> {
  if (addresses.length === 0) return []
  const rows = await Person.findSigners(db, addresses)
  return rows.map(({ publicKey, ...signer }) => ({ ...signer, key: keyOf(publicKey) }))
}

/** By PEM text. Parsing a key takes longer than verifying with it. */
const parsed = new LRUCache<string, KeyObject>({ max: LOOKUP_LIMITS.keysKept })

export function keyOf(pem: string): KeyObject | undefined {
  const key = parsed.get(pem) ?? readPublicKey(pem)
  if (key !== undefined) parsed.set(pem, key)
  return key
}
