import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { LRUCache } from 'lru-cache'
import { Person } from '../../persistence/models/person.js'
import { readPublicKey } from '../../protocol/signatures/rsa.js'
import { INBOUND_LIMITS } from './limits.js'

/** A person whose key may have signed a message, with the facts that decide whether the message counts. */
export interface Signer {
  readonly address: string
  readonly local: boolean
  readonly closed: boolean
  /** A signature by this person was valid before, or they have an account on this pod. */
  readonly hasSigned: boolean
  /** A moderator blocks the person. */
  readonly isPersonBlocked: boolean
  /** The operator blocks the pod of this person, or the pod at the host of their address. */
  readonly blocked: boolean
  /** The pod of this person does not answer. */
  readonly offline: boolean
  /** Undefined: the stored key is unusable. */
  readonly key: KeyObject | undefined
}

/** Returns the known people among these addresses, with one statement. */
export async function findSigners(db: Knex, addresses: readonly string[]): Promise<readonly Signer[]> {
  if (addresses.length === 0) return []
  const rows = await Person.findSigners(db, addresses)
  return rows.map(({ publicKey, ...signer }) => ({ ...signer, key: parsePublicKey(publicKey) }))
}

/** Parsed keys by PEM text: parsing a key takes longer than verifying a signature with it. */
const parsedKeys = new LRUCache<string, KeyObject>({ max: INBOUND_LIMITS.keysKept })

export function parsePublicKey(pem: string): KeyObject | undefined {
  const key = parsedKeys.get(pem) ?? readPublicKey(pem)
  if (key !== undefined) parsedKeys.set(pem, key)
  return key
}
