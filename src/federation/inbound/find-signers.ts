import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import { Person, type SignerRow } from '../../persistence/models/person.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import { INBOUND_LIMITS } from './limits.js'

/** A person whose key may have signed a message. */
export interface Signer extends Omit<SignerRow, 'publicKey'> {
  /** Undefined: the stored key is unusable. */
  readonly key: KeyObject | undefined
}

/** Returns the known people among these addresses, with one statement. */
export async function findSigners(db: Knex, addresses: readonly string[]): Promise<readonly Signer[]> {
  if (addresses.length === 0) return []
  const rows = await Person.findSigners(db, addresses)
  return rows.map(({ publicKey, ...signer }) => ({ ...signer, key: parseStoredKey(publicKey) }))
}

/** Parsed keys by PEM text: parsing a key takes longer than verifying a signature with it. */
const parsedKeys = new LRUCache<string, KeyObject>({ max: INBOUND_LIMITS.keysCached })

export function parseStoredKey(pem: string): KeyObject | undefined {
  const key = parsedKeys.get(pem) ?? readPublicKey(pem)
  if (key !== undefined) parsedKeys.set(pem, key)
  return key
}
