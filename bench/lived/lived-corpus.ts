import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import {
  addAuthorSignature,
  type Crypto,
  mapInChunks,
  newGuid,
  relayable,
  type Signer,
  statusMessage,
} from '../inbound/corpus-entities.js'

export type LivedKind = 'posts' | 'comments' | 'likes' | 'private'

interface LivedMessage {
  readonly kind: LivedKind
  readonly guid: string
  /** The magic envelope, or the encrypted envelope of a private post. */
  readonly body: string
  /** Index of the local user to whom a private post is encrypted. */
  readonly to?: number
}

/** Messages that a small pod receives in a month: posts of twenty remote people, and their comments and likes under local posts. */
export interface LivedCorpus {
  readonly people: readonly Omit<Signer, 'privateKey'>[]
  readonly users: readonly { readonly username: string; readonly publicKey: string; readonly privateKey: string }[]
  /** Public posts of local users, the parents of all comments and likes; `author` is the index of the user. */
  readonly localPosts: readonly { readonly guid: string; readonly author: number }[]
  readonly messages: readonly LivedMessage[]
}

export const MESSAGES = 3_500
/** Of 35 messages: 20 public posts, 6 comments, 4 likes, 5 private posts. */
export const MIX: readonly LivedKind[] = spread({ posts: 20, comments: 6, likes: 4, private: 5 })
const BITS = 4096
const PEOPLE = 20
const USERS = 5
const LOCAL_POSTS = 100

/** Returns the corpus from the folder for temporary files, or creates it there, because signing takes a minute. */
export async function livedCorpus(): Promise<LivedCorpus> {
  const file = join(tmpdir(), `pod-bench-lived-${MESSAGES}.json`)
  if (existsSync(file)) return JSON.parse(await readFile(file, 'utf8'))
  process.stderr.write(`Signing ${MESSAGES} messages with RSA-${BITS}, once; they are kept in ${file}.\n`)
  const crypto = openCryptoPool(availableParallelism())
  try {
    const corpus = await makeCorpus(crypto)
    await writeFile(file, JSON.stringify(corpus))
    return corpus
  } finally {
    await crypto.close()
  }
}

/** The first messages, with the same mix. */
export function firstMessages(corpus: LivedCorpus, count: number): LivedCorpus {
  return { ...corpus, messages: corpus.messages.slice(0, roundToFullMixes(count)) }
}

/** The nearest number of messages that is a multiple of the mix. */
export function roundToFullMixes(count: number): number {
  return Math.max(1, Math.round(count / MIX.length)) * MIX.length
}

export function countKind({ messages }: LivedCorpus, kind: LivedKind): number {
  return messages.filter((message) => message.kind === kind).length
}

async function makeCorpus(crypto: Crypto): Promise<LivedCorpus> {
  const people = Array.from({ length: PEOPLE }, (_, index) => makePerson(index))
  const users = Array.from({ length: USERS }, (_, index) => ({ username: `user${index}`, ...makeKeys() }))
  const localPosts = Array.from({ length: LOCAL_POSTS }, (_, index) => ({ guid: newGuid(), author: index % USERS }))
  const planned = planMessages()
  const messages = await mapInChunks(planned, (message) =>
    message.kind === 'posts' || message.kind === 'private'
      ? makePost(crypto, message, people, users)
      : makeInteraction(crypto, message, people, localPosts),
  )
  return {
    people: people.map(({ privateKey: _, ...known }) => known),
    users: users.map(({ key: _, ...user }) => user),
    localPosts,
    messages,
  }
}

/** A planned message: its kind, and its number among the messages of this kind. */
interface PlannedMessage {
  readonly kind: LivedKind
  readonly number: number
}

function planMessages(): readonly PlannedMessage[] {
  const counts = { posts: 0, comments: 0, likes: 0, private: 0 }
  return Array.from({ length: MESSAGES }, (_, index) => {
    const kind = MIX[index % MIX.length] ?? 'posts'
    counts[kind] += 1
    return { kind, number: counts[kind] - 1 }
  })
}

async function makePost(
  crypto: Crypto,
  { kind, number }: PlannedMessage,
  people: readonly Signer[],
  users: readonly { readonly key: KeyObject }[],
): Promise<LivedMessage> {
  const author = itemAt(people, number)
  const guid = newGuid()
  const payload = writeEntity(statusMessage(author.address, guid, kind === 'posts'))
  const envelope = await crypto.signEnvelope(payload, author.address, author.privateKey)
  if (kind === 'posts') return { kind, guid, body: envelope }
  const to = number % users.length
  const [[body = ''] = []] = await crypto.encryptEnvelopes([{ envelope, recipientKeys: [itemAt(users, to).key] }])
  return { kind, guid, body, to }
}

/** A comment or like on a local post, sent by its author. The author changes when all posts were used, because a person likes a post once. */
async function makeInteraction(
  crypto: Crypto,
  { kind, number }: PlannedMessage,
  people: readonly Signer[],
  localPosts: LivedCorpus['localPosts'],
): Promise<LivedMessage> {
  const author = itemAt(people, number + Math.floor(number / localPosts.length))
  const guid = newGuid()
  const unsigned = relayable(kind, author.address, guid, itemAt(localPosts, number).guid)
  const entity = await addAuthorSignature(crypto, unsigned, author.privateKey)
  return { kind, guid, body: await crypto.signEnvelope(writeEntity(entity), author.address, author.privateKey) }
}

function makePerson(index: number): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: BITS })
  return {
    address: `author${index}@sender${index}.example`,
    guid: newGuid(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privateKey,
  }
}

function makeKeys() {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: BITS })
  return {
    key: publicKey,
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** Distributes the messages of each kind evenly over the mix. */
function spread(counts: Readonly<Record<LivedKind, number>>): readonly LivedKind[] {
  return (Object.keys(counts) as LivedKind[])
    .flatMap((kind) => Array.from({ length: counts[kind] }, (_, index) => ({ kind, at: (index + 0.5) / counts[kind] })))
    .sort((one, other) => one.at - other.at)
    .map(({ kind }) => kind)
}

function itemAt<Item>(items: readonly Item[], index: number): Item {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('The list is empty.')
  return item
}
