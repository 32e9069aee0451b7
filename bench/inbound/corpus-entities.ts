import { type KeyObject, randomBytes } from 'node:crypto'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Relayable } from '../../src/protocol/entities/relayables.js'
import type { openCryptoPool } from '../../workers/threads/crypto-pool.js'

export type Crypto = ReturnType<typeof openCryptoPool>

/** A person whose messages a corpus contains. */
export interface Signer {
  readonly address: string
  readonly guid: string
  readonly publicKey: string
  readonly privateKey: KeyObject
}

const AT_A_TIME = 64
const SENTENCE = 'The quick brown fox — «schnell» — jumps over the lazy dog & 狐 too. '

/** The relayable with the signature of its author. */
export async function signed(crypto: Crypto, written: Relayable, key: KeyObject): Promise<Entity> {
  return { ...written, author_signature: await crypto.signRelayable(written, key) }
}

export function statusMessage(author: string, own: string, isPublic = true): Entity {
  const created = { created_at: new Date(), public: isPublic, text: SENTENCE.repeat(4), photos: [] }
  return { type: 'status_message', author, guid: own, ...created }
}

export function relayable(kind: string, author: string, own: string, parent: string): Relayable {
  const both = { author, guid: own, parent_guid: parent }
  if (kind === 'comments') return { type: 'comment', ...both, text: SENTENCE.repeat(2), created_at: new Date() }
  return { type: 'like', ...both, parent_type: 'Post', positive: true }
}

export function guid(): string {
  return randomBytes(16).toString('hex')
}

/** Runs as many at a time as the threads may queue. */
export async function inParts<Item, Result>(
  items: readonly Item[],
  run: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  while (results.length < items.length) {
    const from = results.length
    const part = items.slice(from, from + AT_A_TIME)
    results.push(...(await Promise.all(part.map((item, index) => run(item, from + index)))))
  }
  return results
}
