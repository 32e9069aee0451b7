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

/** Messages at a time, as many as the threads may queue. */
const CHUNK_SIZE = 64
const SENTENCE = 'The quick brown fox — «schnell» — jumps over the lazy dog & 狐 too. '

/** The relayable with the signature of its author. */
export async function addAuthorSignature(crypto: Crypto, relayable: Relayable, key: KeyObject): Promise<Entity> {
  return { ...relayable, author_signature: await crypto.signRelayable(relayable, key) }
}

export function statusMessage(author: string, guid: string, isPublic = true): Entity {
  const created = { created_at: new Date(), public: isPublic, text: SENTENCE.repeat(4), photos: [] }
  return { type: 'status_message', author, guid, ...created }
}

export function relayable(kind: string, author: string, guid: string, parent: string): Relayable {
  const common = { author, guid, parent_guid: parent }
  if (kind === 'comments') return { type: 'comment', ...common, text: SENTENCE.repeat(2), created_at: new Date() }
  return { type: 'like', ...common, parent_type: 'Post', positive: true }
}

export function newGuid(): string {
  return randomBytes(16).toString('hex')
}

/** Maps the items in chunks, one chunk after the other. */
export async function mapInChunks<Item, Result>(
  items: readonly Item[],
  map: (item: Item, index: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  while (results.length < items.length) {
    const from = results.length
    const chunk = items.slice(from, from + CHUNK_SIZE)
    results.push(...(await Promise.all(chunk.map((item, index) => map(item, from + index)))))
  }
  return results
}
