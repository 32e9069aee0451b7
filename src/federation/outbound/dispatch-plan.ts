import type { Knex } from 'knex'
import type { OutgoingMessage, RecipientSelector } from '../../domain/outbound/outgoing-messages.js'
import type { OutgoingRecord } from '../../jobs/definitions.js'
import { NewerVersionNeeded } from '../../jobs/job-version.js'
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
} from '../../persistence/outbound/lock-dispatched.js'
import type { Entity, RelayableKind } from '../../protocol/entities/registry.js'
import type { Services } from '../../services/services.js'
import { conversationEntity, messageEntity } from './conversation-entities.js'
import { contactEntity, profileEntity } from './person-entities.js'
import { photoEntity, postEntity } from './post-entities.js'
import { type OutgoingRelayable, participationEntity, relayableEntity } from './relayable-entities.js'
import { signStoredRelayable } from './sign-stored-relayables.js'

/** A message to other pods, with its recipients. */
export interface DispatchPlan {
  readonly message: OutgoingMessage
  readonly recipients: RecipientSelector
  /** Set for a public text of a local person, whose mentioned people may have to be discovered first. */
  readonly mentions?: PublicMentions
}

interface PublicMentions {
  /** The row that the mentions belong to. */
  readonly textId: { readonly postId: number } | { readonly commentId: number }
  readonly text: string
  /** This pod delivers the text to the mentioned people. False under a remote post, whose pod relays the text. */
  readonly shouldDeliverToMentioned: boolean
}

interface PlanDependencies extends Pick<Services, 'config' | 'crypto' | 'secrets'> {
  readonly db: Knex.Transaction
}

type RecordType = OutgoingRecord['record']

/** Recipients and signer of each record: FEDERATION.md, "Recipients". */
const PLAN_FUNCTIONS: {
  readonly [Type in RecordType]: (
    dependencies: PlanDependencies,
    record: Extract<OutgoingRecord, { record: Type }>,
  ) => Promise<DispatchPlan | undefined>
} = {
  post: planPost,
  photo: planPhoto,
  comment: (dependencies, { guid }) => planRelayable(dependencies, 'comment', guid),
  like: (dependencies, { guid }) => planRelayable(dependencies, 'like', guid),
  poll_participation: (dependencies, { guid }) => planRelayable(dependencies, 'poll_participation', guid),
  participation: planParticipation,
  conversation: (dependencies, record) =>
    planConversation(dependencies, record, lockDispatchedConversation, conversationEntity),
  message: (dependencies, record) => planConversation(dependencies, record, lockDispatchedMessage, messageEntity),
  profile: planProfile,
  contact: planContact,
}

/**
 * Plans the message for a record, and locks the record until the transaction ends. Undefined: the record is deleted, or no other
 * pod receives it.
 */
export async function planDispatch(
  { config, crypto, secrets }: Pick<Services, 'config' | 'crypto' | 'secrets'>,
  transaction: Knex.Transaction,
  record: OutgoingRecord,
): Promise<DispatchPlan | undefined> {
  const plan = PLAN_FUNCTIONS[record.record] as (
    dependencies: PlanDependencies,
    record: OutgoingRecord,
  ) => Promise<DispatchPlan | undefined> // the table pairs each type with its function
  if (plan === undefined) throw new NewerVersionNeeded(`This program sends no ${record.record}.`)
  return plan({ config, crypto, secrets, db: transaction }, record)
}

async function planPost(
  dependencies: PlanDependencies,
  { guid }: { readonly guid: string },
): Promise<DispatchPlan | undefined> {
  const post = await lockDispatchedPost(dependencies.db, guid)
  const entity = post && (await postEntity(dependencies, guid))
  if (post === undefined || entity === undefined) return undefined
  return {
    message: creationMessage('post', guid, { senderId: post.authorId, public: post.public, entity }),
    recipients: { kind: 'post', postId: post.id },
    ...(post.public && { mentions: { textId: { postId: post.id }, text: post.text, shouldDeliverToMentioned: true } }),
  }
}

/** A photo of a post is sent to the readers of the post. */
async function planPhoto(
  dependencies: PlanDependencies,
  { guid }: { readonly guid: string },
): Promise<DispatchPlan | undefined> {
  const photo = await lockDispatchedPhoto(dependencies.db, guid)
  const entity = photo && (await photoEntity(dependencies, guid))
  if (photo === undefined || entity === undefined) return undefined
  return {
    message: creationMessage('photo', guid, { senderId: photo.authorId, public: photo.public, entity }),
    recipients: photo.postId === null ? { kind: 'photo', photoId: photo.id } : { kind: 'post', postId: photo.postId },
  }
}

async function planRelayable(
  dependencies: PlanDependencies,
  kind: RelayableKind,
  guid: string,
): Promise<DispatchPlan | undefined> {
  const record = await lockDispatchedRelayable(dependencies.db, kind, guid)
  const route = record && routeOf(kind, record)
  const storedEntity = route && (await relayableEntity(dependencies, kind, guid))
  const entity = storedEntity && (await signDispatchedRelayable(dependencies, storedEntity, record))
  if (record === undefined || route === undefined || entity === undefined) return undefined
  const { author, threadPost, text } = record
  const hasMentions = kind === 'comment' && threadPost.isPublic && author.isLocal
  return {
    message: {
      ...creationMessage(kind, guid, { senderId: route.senderId, public: threadPost.isPublic, entity }),
      priority: author.isLocal ? DELIVERY_PRIORITY.localUsers : DELIVERY_PRIORITY.relay,
    },
    recipients: route.recipients,
    ...(hasMentions && {
      mentions: { textId: { commentId: record.id }, text, shouldDeliverToMentioned: threadPost.author.isLocal },
    }),
  }
}

/** Authors of local posts sign the envelopes of their own interactions. */
function signDispatchedRelayable(
  dependencies: PlanDependencies,
  entity: OutgoingRelayable,
  { author, threadPost }: DispatchedRelayable,
): Promise<OutgoingRelayable | undefined> {
  return signStoredRelayable(dependencies, dependencies.db, entity, {
    ...author,
    isSigner: author.id === threadPost.author.id,
  })
}

/**
 * The author of a local post sends an interaction to all readers of the post. An interaction with a remote post is sent to its
 * author, whose pod relays it. Undefined: neither the post nor the interaction is local.
 */
function routeOf(
  kind: RelayableKind,
  { id, author, threadPost }: DispatchedRelayable,
): { readonly senderId: number; readonly recipients: RecipientSelector } | undefined {
  if (threadPost.author.isLocal) {
    const recipients: RecipientSelector = {
      kind: 'post',
      postId: threadPost.id,
      ...(kind === 'comment' && { mentionedInCommentId: id }),
      ...(!author.isLocal && { exceptPodOfPersonId: author.id }),
    }
    return { senderId: threadPost.author.id, recipients }
  }
  if (!author.isLocal) return undefined
  return { senderId: author.id, recipients: { kind: 'people', personIds: [threadPost.author.id] } }
}

/** Undefined for a participation by a remote person: only the pod of the participant sends it. */
async function planParticipation(
  dependencies: PlanDependencies,
  { guid }: { readonly guid: string },
): Promise<DispatchPlan | undefined> {
  const participation = await lockDispatchedRelayable(dependencies.db, 'participation', guid)
  if (!participation?.author.isLocal) return undefined
  const entity = await participationEntity(dependencies, guid)
  if (entity === undefined) return undefined
  const { author, threadPost } = participation
  return {
    message: creationMessage('participation', guid, { senderId: author.id, public: false, entity }),
    recipients: { kind: 'people', personIds: [threadPost.author.id] },
  }
}

async function planConversation(
  dependencies: PlanDependencies,
  { record, guid }: { readonly record: 'conversation' | 'message'; readonly guid: string },
  lock: (transaction: Knex.Transaction, guid: string) => Promise<DispatchedMessage | undefined>,
  entityOf: (dependencies: PlanDependencies, guid: string) => Promise<Entity | undefined>,
): Promise<DispatchPlan | undefined> {
  const message = await lock(dependencies.db, guid)
  const entity = message && (await entityOf(dependencies, guid))
  if (message === undefined || entity === undefined) return undefined
  return {
    message: creationMessage(record, guid, { senderId: message.authorId, public: false, entity }),
    recipients: { kind: 'people', personIds: message.participants },
  }
}

async function planProfile(
  dependencies: PlanDependencies,
  { personId, to }: { readonly personId: number; readonly to?: number },
): Promise<DispatchPlan | undefined> {
  // Locked until the message is written, so that of two changes the older one is never sent last.
  await Person.lock(dependencies.db, personId)
  const user = await findOpenAccount(dependencies, { personId })
  const entity = await profileEntity(dependencies, personId)
  if (user?.person === undefined || entity === undefined) return undefined
  return {
    message: creationMessage('profile', user.person.guid, { senderId: personId, public: entity.public, entity }),
    recipients: to === undefined ? { kind: 'contacts', userId: user.id } : { kind: 'people', personIds: [to] },
  }
}

async function planContact(
  dependencies: PlanDependencies,
  contact: Extract<OutgoingRecord, { record: 'contact' }>,
): Promise<DispatchPlan | undefined> {
  const user = await findOpenAccount(dependencies, { id: contact.userId })
  const recipient = await Person.query(dependencies.db).findById(contact.personId)
  if (user?.person === undefined || recipient === undefined) return undefined
  // Locked, and compared with the current state: a later change has a record of its own, which may be dispatched first.
  await Person.lock(dependencies.db, user.personId)
  if (!(await isStillCurrent(dependencies, contact))) return undefined
  const entity = contactEntity(user.person, recipient, contact)
  return {
    message: creationMessage('contact', recipient.guid, { senderId: user.personId, public: false, entity }),
    recipients: { kind: 'people', personIds: [recipient.id] },
  }
}

async function isStillCurrent(
  { db }: PlanDependencies,
  { userId, personId, sharing, blocking }: Extract<OutgoingRecord, { record: 'contact' }>,
): Promise<boolean> {
  const contact = await Contact.query(db).findOne({ userId, personId, receiving: true })
  const block = await Block.query(db).findById([userId, personId])
  return sharing === (contact !== undefined) && blocking === (block !== undefined)
}

async function findOpenAccount(
  { db }: PlanDependencies,
  key: { readonly id: number } | { readonly personId: number },
): Promise<User | undefined> {
  return User.query(db).findOne(key).whereNull('closedAt').withGraphFetched('person')
}

function creationMessage(
  record: RecordType,
  guid: string,
  rest: Pick<OutgoingMessage, 'senderId' | 'public' | 'entity'>,
): OutgoingMessage {
  return { record, guid, verb: 'create', ...rest }
}
