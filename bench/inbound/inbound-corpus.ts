import { generateKeyPairSync } from 'node:crypto'
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
} from './corpus-entities.js'

/** Length of all RSA keys of a corpus. */
export type Bits = 2048 | 4096

/** A burst of messages from other pods: their senders, the stored parents of comments and likes, and the envelopes. */
export interface InboundCorpus {
  readonly people: readonly { readonly address: string; readonly guid: string; readonly publicKey: string }[]
  readonly parents: readonly { readonly guid: string; readonly author: string }[]
  readonly messages: readonly { readonly guid: string; readonly envelope: string }[]
  readonly kinds: Readonly<Record<'posts' | 'comments' | 'likes', number>>
  readonly signaturesOfMessage: number
}

const PEOPLE = 16
const PARENTS = 2_000
/** A process reaches its full speed after some thousand messages. */
const MESSAGES = 12_000
/** Kinds of ten messages. */
const MIX = [...Array(2).fill('posts'), ...Array(4).fill('comments'), ...Array(4).fill('likes')] as const

/** Returns the corpus from the folder for temporary files, or creates it there, because signing takes minutes. */
export async function inboundCorpus(bits: Bits): Promise<InboundCorpus> {
  const file = join(tmpdir(), `pod-bench-inbound-${bits}-${MESSAGES}.json`)
  if (existsSync(file)) return JSON.parse(await readFile(file, 'utf8'))
  process.stderr.write(`Signing ${MESSAGES} messages with RSA-${bits}, once; they are kept in ${file}.\n`)
  const crypto = openCryptoPool(availableParallelism())
  try {
    const corpus = await makeCorpus(crypto, bits)
    await writeFile(file, JSON.stringify(corpus))
    return corpus
  } finally {
    await crypto.close()
  }
}

/** The first messages of a corpus, with the same mix. Their number is a multiple of ten, the length of the mix. */
export function firstMessages(corpus: InboundCorpus, count: number): InboundCorpus {
  if (corpus.messages.length < count) throw new Error('The corpus has fewer messages.')
  const kindsOf = (kind: string) => (MIX.filter((each) => each === kind).length * count) / MIX.length
  const kinds = { posts: kindsOf('posts'), comments: kindsOf('comments'), likes: kindsOf('likes') }
  return { ...corpus, messages: corpus.messages.slice(0, count), kinds }
}

/** Comments of one person with a known key on unknown posts. */
export interface OrphanComments {
  readonly author: InboundCorpus['people'][number]
  readonly envelopes: readonly string[]
}

export async function makeOrphanComments(bits: Bits, count: number): Promise<OrphanComments> {
  const crypto = openCryptoPool(availableParallelism())
  try {
    const { privateKey, ...author } = makeSigner(bits, PEOPLE)
    const envelopes = await mapInChunks(Array.from({ length: count }), async () => {
      const comment = await addAuthorSignature(
        crypto,
        relayable('comments', author.address, newGuid(), newGuid()),
        privateKey,
      )
      return crypto.signEnvelope(writeEntity(comment), author.address, privateKey)
    })
    return { author, envelopes }
  } finally {
    await crypto.close()
  }
}

async function makeCorpus(crypto: Crypto, bits: number): Promise<InboundCorpus> {
  const people = Array.from({ length: PEOPLE }, (_, index) => makeSigner(bits, index))
  const parents = Array.from({ length: PARENTS }, (_, index) => ({
    guid: newGuid(),
    author: signerOf(people, index).address,
  }))
  const messages = await mapInChunks(Array.from({ length: MESSAGES }), (_, index) =>
    makeMessage(crypto, people, parents, index),
  )
  const kindsOf = (kind: string) => messages.filter((message) => message.kind === kind).length
  const kinds = { posts: kindsOf('posts'), comments: kindsOf('comments'), likes: kindsOf('likes') }
  return {
    people: people.map(({ privateKey: _, ...known }) => known),
    parents,
    messages: messages.map(({ guid, envelope }) => ({ guid, envelope })),
    kinds,
    signaturesOfMessage: (kinds.posts + 2 * (kinds.comments + kinds.likes)) / messages.length,
  }
}

function makeSigner(bits: number, index: number): Signer {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  return {
    address: `signer${index}@pod${index}-${bits}.example`,
    guid: newGuid(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privateKey,
  }
}

/** A post, or a comment or like that is sent by the author of its parent and signed by its own author. */
async function makeMessage(
  crypto: Crypto,
  people: readonly Signer[],
  parents: InboundCorpus['parents'],
  index: number,
): Promise<{ kind: string; guid: string; envelope: string }> {
  const kind = MIX[index % MIX.length] ?? 'posts'
  const parentIndex = index % PARENTS
  const poster = signerOf(people, parentIndex)
  const parent = parents[parentIndex]
  // A person can like a post once, so the author changes when all parents were used.
  const author = signerOf(people, parentIndex + 1 + (Math.floor(index / PARENTS) % (PEOPLE - 1)))
  if (parent === undefined) throw new Error('The corpus has no parents.')
  const guid = newGuid()
  const entity =
    kind === 'posts'
      ? statusMessage(poster.address, guid)
      : await addAuthorSignature(crypto, relayable(kind, author.address, guid, parent.guid), author.privateKey)
  return {
    kind,
    guid,
    envelope: await crypto.signEnvelope(writeEntity(entity), poster.address, poster.privateKey),
  }
}

function signerOf(people: readonly Signer[], index: number): Signer {
  const signer = people[index % people.length]
  if (signer === undefined) throw new Error('The corpus has no people.')
  return signer
}
