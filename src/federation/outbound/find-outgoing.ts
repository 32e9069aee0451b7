import type { Knex } from 'knex'
import type { OutgoingMessage, RecipientSelector } from '../../domain/outbound/outgoing-messages.js'
import type { OutgoingRecord } from '../../jobs/definitions.js'
import { Block, Contact } from '../../persistence/models/contact.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import {
  type DispatchedMessage,
  type DispatchedRelayable,
  lockDispatchedConversation,
  lockDispatchedMessage,
  lockDispatchedPhoto,
  lockDispatchedPost,
  lockDispatchedRelayable,
  type RelayableKind,
} from '../../persistence/outbound/lock-dispatched.js'
import type { Pod } from '../../pod/pod.js'
import type { Entity } from '../../protocol/entities/registry.js'
import { conversationEntity, messageEntity } from './conversation-entities.js'
import { contactEntity, profileEntity } from './person-entities.js'
import { photoEntity, postEntity } from './post-entities.js'
import { commentEntity, likeEntity, participationEntity, voteEntity } from './relayable-entities.js'

/** Something that is to be told to other pods, and to whom. */
export interface Outgoing {
  readonly message: OutgoingMessage
  readonly audience: RecipientSelector
  /** Text of our own people that everybody may read; people whom it names may have to be found first. */
  readonly names?: Naming
}

interface Naming {
  readonly in: { readonly postId: number } | { readonly commentId: number }
  readonly text: string
  /** Whom it names gets it from us; under a post from elsewhere, that is for its pod to see to. */
  readonly notify: boolean
}

interface Source {
  readonly config: Pod['config']
  readonly db: Knex.Transaction
}

type Kind = OutgoingRecord['record']

/** Who gets what, and who signs it: FEDERATION.md, "Who gets what". */
const kinds: {
  readonly [Each in Kind]: (
    source: Source,
    record: Extract<OutgoingRecord, { record: Each }>,
  ) => Promise<Outgoing | undefined>
} = {
  post: outgoingPost,
  photo: outgoingPhoto,
  comment: (source, { guid }) => outgoingRelayable(source, 'comment', guid, commentEntity),
  like: (source, { guid }) => outgoingRelayable(source, 'like', guid, likeEntity),
  poll_participation: (source, { guid }) => outgoingRelayable(source, 'poll_participation', guid, voteEntity),
  participation: outgoingParticipation,
  conversation: (source, record) =>
    outgoingConversation(source, record, lockDispatchedConversation, conversationEntity),
  message: (source, record) => outgoingConversation(source, record, lockDispatchedMessage, messageEntity),
  profile: outgoingProfile,
  contact: outgoingContact,
}

/** Undefined: it is gone, or it is nobody else's business. What is found stays until the transaction ends. */
export async function outgoingOf(
  { config }: Pick<Pod, 'config'>,
  transaction: Knex.Transaction,
  record: OutgoingRecord,
): Promise<Outgoing | undefined> {
  const make = kinds[record.record] as (source: Source, record: OutgoingRecord) => Promise<Outgoing | undefined> // the table pairs each kind with its function
  return make({ config, db: transaction }, record)
}

async function outgoingPost(source: Source, { guid }: { readonly guid: string }): Promise<Outgoing | undefined> {
  const post = await lockDispatchedPost(source.db, guid)
  const entity = post && (await postEntity(source, guid))
  if (post === undefined || entity === undefined) return undefined
  return {
    message: creation('post', guid, { senderId: post.authorId, public: post.public, entity }),
    audience: { of: 'post', postId: post.id },
    ...(post.public && { names: { in: { postId: post.id }, text: post.text, notify: true } }),
  }
}

/** As part of a post it goes to those who have the post. */
async function outgoingPhoto(source: Source, { guid }: { readonly guid: string }): Promise<Outgoing | undefined> {
  const photo = await lockDispatchedPhoto(source.db, guid)
  const entity = photo && (await photoEntity(source, guid))
  if (photo === undefined || entity === undefined) return undefined
  return {
    message: creation('photo', guid, { senderId: photo.authorId, public: photo.public, entity }),
    audience: photo.postId === null ? { of: 'photo', photoId: photo.id } : { of: 'post', postId: photo.postId },
  }
}

async function outgoingRelayable(
  source: Source,
  kind: RelayableKind,
  guid: string,
  entityOf: (source: Source, guid: string) => Promise<Entity | undefined>,
): Promise<Outgoing | undefined> {
  const record = await lockDispatchedRelayable(source.db, kind, guid)
  const way = record && wayOf(kind, record)
  const entity = way && (await entityOf(source, guid))
  if (record === undefined || way === undefined || entity === undefined) return undefined
  const { author, root, text } = record
  const isNaming = kind === 'comment' && root.public && author.isLocal
  return {
    message: {
      ...creation(kind, guid, { senderId: way.senderId, public: root.public, entity }),
      priority: author.isLocal ? DELIVERY_PRIORITY.own : DELIVERY_PRIORITY.relay,
    },
    audience: way.audience,
    ...(isNaming && { names: { in: { commentId: record.id }, text, notify: root.author.isLocal } }),
  }
}

/** Under a post of ours its author tells everybody; under one from elsewhere we tell its author, whose pod does that. */
function wayOf(
  kind: RelayableKind,
  { id, author, root }: DispatchedRelayable,
): { readonly senderId: number; readonly audience: RecipientSelector } | undefined {
  if (root.author.isLocal) {
    const audience: RecipientSelector = {
      of: 'post',
      postId: root.id,
      ...(kind === 'comment' && { mentionedInCommentId: id }),
      ...(!author.isLocal && { exceptPodOfPersonId: author.id }),
    }
    return { senderId: root.author.id, audience }
  }
  if (!author.isLocal) return undefined
  return { senderId: author.id, audience: { of: 'people', personIds: [root.author.id] } }
}

/** The author of a post of this pod needs no telling. */
async function outgoingParticipation(
  source: Source,
  { guid }: { readonly guid: string },
): Promise<Outgoing | undefined> {
  const participation = await lockDispatchedRelayable(source.db, 'participation', guid)
  if (!participation?.author.isLocal) return undefined
  const entity = await participationEntity(source, guid)
  if (entity === undefined) return undefined
  const { author, root } = participation
  return {
    message: creation('participation', guid, { senderId: author.id, public: false, entity }),
    audience: { of: 'people', personIds: [root.author.id] },
  }
}

async function outgoingConversation(
  source: Source,
  { record, guid }: { readonly record: 'conversation' | 'message'; readonly guid: string },
  hold: (transaction: Knex.Transaction, guid: string) => Promise<DispatchedMessage | undefined>,
  entityOf: (source: Source, guid: string) => Promise<Entity | undefined>,
): Promise<Outgoing | undefined> {
  const message = await hold(source.db, guid)
  const entity = message && (await entityOf(source, guid))
  if (message === undefined || entity === undefined) return undefined
  return {
    message: creation(record, guid, { senderId: message.authorId, public: false, entity }),
    audience: { of: 'people', personIds: message.participants },
  }
}

async function outgoingProfile(
  source: Source,
  { personId, to }: { readonly personId: number; readonly to?: number },
): Promise<Outgoing | undefined> {
  // Nobody changes it until it is written, so that of two changes the older one is never told last.
  await Person.lock(source.db, personId)
  const user = await openUser(source, { personId })
  const entity = await profileEntity(source, personId)
  if (user?.person === undefined || entity === undefined) return undefined
  return {
    message: creation('profile', user.person.guid, { senderId: personId, public: entity.public, entity }),
    audience: to === undefined ? { of: 'contacts', userId: user.id } : { of: 'people', personIds: [to] },
  }
}

async function outgoingContact(
  source: Source,
  contact: Extract<OutgoingRecord, { record: 'contact' }>,
): Promise<Outgoing | undefined> {
  const user = await openUser(source, { id: contact.userId })
  const recipient = await Person.query(source.db).findById(contact.personId)
  if (user?.person === undefined || recipient === undefined) return undefined
  // One after the other, and only what is so now: whatever has changed since has a record of its own, which may come first.
  await Person.lock(source.db, user.personId)
  if (!(await isStillSo(source, contact))) return undefined
  const entity = contactEntity(user.person, recipient, contact)
  return {
    message: creation('contact', recipient.guid, { senderId: user.personId, public: false, entity }),
    audience: { of: 'people', personIds: [recipient.id] },
  }
}

async function isStillSo(
  { db }: Source,
  { userId, personId, sharing, blocking }: Extract<OutgoingRecord, { record: 'contact' }>,
): Promise<boolean> {
  const contact = await Contact.query(db).findOne({ userId, personId, receiving: true })
  const block = await Block.query(db).findById([userId, personId])
  return sharing === (contact !== undefined) && blocking === (block !== undefined)
}

async function openUser(
  { db }: Source,
  who: { readonly id: number } | { readonly personId: number },
): Promise<User | undefined> {
  return User.query(db).findOne(who).whereNull('closedAt').withGraphFetched('person')
}

function creation(
  record: Kind,
  guid: string,
  rest: Pick<OutgoingMessage, 'senderId' | 'public' | 'entity'>,
): OutgoingMessage {
  return { record, guid, verb: 'create', ...rest }
}
