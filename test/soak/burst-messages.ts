import { newGuid } from '../../src/domain/new-guid.js'
import type { ReshareEntity, StatusMessageEntity } from '../../src/protocol/entities/posts.js'
import type { CommentEntity, LikeEntity } from '../../src/protocol/entities/relayables.js'
import { signRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import type { FakePerson } from '../support/federation/fake-pods.js'

/** A post of a local user of the pod under test. */
export interface LocalPost {
  readonly guid: string
  readonly author: string
}

/** The messages to send, and the entities that must be stored at the end. */
export interface Burst {
  /** Envelopes in the order of arrival. */
  readonly envelopes: readonly string[]
  readonly posts: readonly StatusMessageEntity[]
  readonly reshares: readonly ReshareEntity[]
  readonly comments: readonly CommentEntity[]
  readonly likes: readonly LikeEntity[]
  /** Invalid messages: their fault, and the guid of the entity if the sender is proven. */
  readonly invalid: readonly { readonly fault: string; readonly guid: string | undefined }[]
}

export interface BurstSize {
  readonly messages: number
  readonly seed: number
  /** Fraction of invalid messages. Default: 0.05. */
  readonly invalid?: number
  /** One post in this many is not sent, so that the pod fetches it after an interaction with it. */
  readonly unsentPostInterval?: number
}

interface Root {
  readonly guid: string
  /** The author, who relays all interactions. Undefined for a local post: the authors of interactions send them. */
  readonly author: FakePerson | undefined
}

/** Makes posts, and comments, likes and reshares of them and of the local posts, in random order. */
export function makeBurst(
  people: readonly FakePerson[],
  localPosts: readonly LocalPost[],
  { messages, seed, invalid: invalidShare = 0.05, unsentPostInterval = Number.POSITIVE_INFINITY }: BurstSize,
): Burst {
  const random = randomFrom(seed)
  const pick = <Item>(items: readonly Item[]): Item => {
    const item = items[Math.floor(random() * items.length)]
    if (item === undefined) throw new Error('The list is empty.')
    return item
  }
  const valid = Math.round(messages * (0.9 - invalidShare))
  const envelopes: string[] = []
  const posts: StatusMessageEntity[] = []
  const roots: Root[] = localPosts.map(({ guid }) => ({ guid, author: undefined }))
  for (let index = 0; index < valid * 0.1; index += 1) {
    const author = pick(people)
    const post = postBy(author)
    posts.push(post)
    roots.push({ guid: post.guid, author })
    envelopes.push(envelopeOf(author, post))
  }

  const seenKeys = new Set<string>()
  const isNew = (...names: readonly string[]) => seenKeys.size < seenKeys.add(names.join(' ')).size
  const reshares: ReshareEntity[] = []
  const comments: CommentEntity[] = []
  const likes: LikeEntity[] = []
  while (envelopes.length < valid) {
    const author = pick(people)
    const root = random() < 0.2 ? pick(roots.slice(0, localPosts.length)) : pick(roots)
    const kind = random()
    if (kind < 0.5) {
      const comment = signEntity(author, commentBy(author, root.guid))
      comments.push(comment)
      envelopes.push(envelopeOf(root.author ?? author, comment))
    } else if (kind < 0.95 && isNew('like', author.address, root.guid)) {
      const like = signEntity(author, likeBy(author, root.guid))
      likes.push(like)
      envelopes.push(envelopeOf(root.author ?? author, like))
    } else if (kind >= 0.95 && isNew('reshare', author.address, root.guid)) {
      const rootAuthor = root.author?.address ?? localPosts.find(({ guid }) => guid === root.guid)?.author
      if (rootAuthor === undefined || rootAuthor === author.address) continue
      const reshare = reshareBy(author, root.guid, rootAuthor)
      reshares.push(reshare)
      envelopes.push(envelopeOf(author, reshare))
    }
  }

  const invalid = Array.from({ length: Math.round(messages * invalidShare) }, (_, index) => {
    const [author, other] = [pick(people), pick(people)]
    return makeInvalidMessage(index, author, other.address === author.address ? pickOther(people, author) : other)
  })
  const referencedGuids = new Set([...comments, ...likes].map(({ parent_guid: guid }) => guid))
  const sent = envelopes.filter((_, index) => {
    const post = posts[index] // the first envelopes are those of the posts
    return (
      post === undefined || index % unsentPostInterval !== unsentPostInterval - 1 || !referencedGuids.has(post.guid)
    )
  })
  const repeats = Array.from({ length: Math.round(messages * 0.1) }, () => pick(sent))
  const all = [...sent, ...repeats, ...invalid.map(({ envelope }) => envelope)]
  return { envelopes: shuffle(all, random), posts, reshares, comments, likes, invalid }
}

function makeInvalidMessage(index: number, author: FakePerson, other: FakePerson) {
  const post = postBy(author)
  switch (index % 5) {
    case 0:
      return {
        fault: 'InvalidSignature',
        guid: undefined,
        envelope: envelopeOf({ ...other, address: author.address }, post),
      }
    case 1:
      return { fault: 'InvalidSender', guid: post.guid, envelope: envelopeOf(other, post) }
    case 2:
      return { fault: 'NotPublic', guid: post.guid, envelope: envelopeOf(author, { ...post, public: false }) }
    case 3:
      return { fault: 'InvalidEnvelope', guid: undefined, envelope: envelopeOf(author, post).slice(0, 300) }
    default:
      return { fault: 'ValidationError', guid: post.guid, envelope: envelopeOf(author, { ...post, text: ' ' }) }
  }
}

function pickOther(people: readonly FakePerson[], author: FakePerson): FakePerson {
  const other = people.find(({ address }) => address !== author.address)
  if (other === undefined) throw new Error('There is only one person.')
  return other
}

const createdAt = new Date('2024-05-06T07:08:09Z')

function postBy({ address }: FakePerson): StatusMessageEntity {
  const text = 'Good #morning, everybody'
  return {
    type: 'status_message',
    author: address,
    guid: newGuid(),
    created_at: createdAt,
    public: true,
    text,
    photos: [],
  }
}

function commentBy({ address }: FakePerson, parentGuid: string): CommentEntity {
  const rest = { parent_guid: parentGuid, text: 'And to you', created_at: createdAt }
  return { type: 'comment', author: address, guid: newGuid(), ...rest }
}

function likeBy({ address }: FakePerson, parentGuid: string): LikeEntity {
  const rest = { parent_guid: parentGuid, parent_type: 'Post', positive: true } as const
  return { type: 'like', author: address, guid: newGuid(), ...rest }
}

function reshareBy({ address }: FakePerson, rootGuid: string, rootAuthor: string): ReshareEntity {
  const rest = { created_at: createdAt, root_author: rootAuthor, root_guid: rootGuid }
  return { type: 'reshare', author: address, guid: newGuid(), ...rest }
}

function signEntity<Signed extends CommentEntity | LikeEntity>({ privateKey }: FakePerson, entity: Signed): Signed {
  return { ...entity, author_signature: signRelayable(entity, privateKey) }
}

/** Mulberry32: the same numbers for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export function shuffle<Item>(items: readonly Item[], random: () => number): readonly Item[] {
  return items
    .map((item) => ({ item, place: random() }))
    .sort((one, other) => one.place - other.place)
    .map(({ item }) => item)
}
