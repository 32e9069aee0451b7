import type { ConversationEntity } from '../entities/conversations.js'
import type { ProfileEntity } from '../entities/people.js'
import type { ReceivedEntity } from '../entities/registry.js'
import type { RetractionEntity } from '../entities/retraction.js'
import type { ProtocolFault } from '../errors.js'

/** What is known here about a thing that an entity refers to. */
export interface KnownThing {
  readonly author: string
  readonly local: boolean
  readonly public: boolean
}

/** What an entity may refer to; what is unknown here is left out. A root is what parents lead to: the post of a liked comment. */
export interface References {
  /** Of comments, likes, votes: the root. Of reshares: what they reshare. Of participations: the post. */
  readonly root?: KnownThing | undefined
  /** Of retractions, with its root where it is a relayable itself. */
  readonly target?: { readonly author: string; readonly root?: { readonly author: string } | undefined } | undefined
  /** Of messages. */
  readonly conversation?: { readonly participants: readonly string[] } | undefined
}

/** How an entity came here. */
export interface Arrival<Entity extends ReceivedEntity = ReceivedEntity> {
  readonly entity: Entity
  /** Whose key signed the envelope. */
  readonly sender: string
  /** The local person that a private message was encrypted for; without one it came in public. */
  readonly recipient?: string | undefined
  /** Whether a relayable or a migration carries the signature it needs beside that of the envelope. */
  readonly signature: 'valid' | 'wrong' | 'absent'
}

type Type = ReceivedEntity['type']
type Rule<Entity extends ReceivedEntity> = (
  arrival: Arrival<Entity>,
  references: References,
) => ProtocolFault | undefined
type OfType<T extends Type> = Extract<ReceivedEntity, { readonly type: T }>

/** Everything another pod may send, and what each must fulfil; the first fault counts (FEDERATION.md, "Who may send what"). */
const rules: { readonly [T in Type]: readonly Rule<OfType<T>>[] } = {
  status_message: [sentByAuthor, markedPublic],
  photo: [sentByAuthor, markedPublic],
  reshare: [sentByAuthor, rootMayBeReshared],
  comment: [rootKnown, authorSigned, sentToOrByRootAuthor],
  like: [rootKnown, authorSigned, sentToOrByRootAuthor],
  poll_participation: [rootKnown, authorSigned, sentToOrByRootAuthor],
  event_participation: [notStored],
  event: [notStored],
  participation: [sentByAuthor, postIsLocal],
  profile: [sentByAuthor, tellsNothingPrivate],
  contact: [sentByAuthor, privateOnly, forRecipient],
  conversation: [sentByAuthor, privateOnly, amongParticipants],
  message: [sentByAuthor, privateOnly, withinConversation],
  retraction: [personOnlyPrivately, targetKnown, mayRetract],
  account_deletion: [sentByAuthor],
  account_migration: [sentByAuthor, witnessSigned],
}

/** Why an entity whose envelope is in order must not be stored all the same; `undefined`: it may. */
export function faultOfArrival(arrival: Arrival, references: References): ProtocolFault | undefined {
  const applying = rules[arrival.entity.type] as readonly Rule<ReceivedEntity>[] // the table pairs each type with its rules
  for (const rule of applying) {
    const fault = rule(arrival, references)
    if (fault !== undefined) return fault
  }
  return undefined
}

type Authored = Arrival<Extract<ReceivedEntity, { readonly author: string }>>
type SignedByAuthor = Arrival<OfType<'comment' | 'like' | 'poll_participation'>>

function sentByAuthor({ entity, sender }: Authored): ProtocolFault | undefined {
  return sender === entity.author ? undefined : 'InvalidSender'
}

function markedPublic({ entity, recipient }: Arrival<OfType<'status_message' | 'photo'>>): ProtocolFault | undefined {
  return recipient !== undefined || entity.public ? undefined : 'NotPublic'
}

function privateOnly({ recipient }: Arrival): ProtocolFault | undefined {
  return recipient === undefined ? 'NotPublic' : undefined
}

function rootMayBeReshared({ entity }: Arrival<OfType<'reshare'>>, { root }: References): ProtocolFault | undefined {
  if (entity.root_author === undefined) return undefined
  if (root === undefined) return 'NotFetchable'
  if (root.author !== entity.root_author) return 'ValidationError'
  return root.public ? undefined : 'NotAllowed'
}

function rootKnown(_arrival: Arrival, { root }: References): ProtocolFault | undefined {
  return root === undefined ? 'NotFetchable' : undefined
}

/** The author of the root needs no signature under an own relayable: the envelope is signed by the same key. */
function authorSigned({ entity, signature }: SignedByAuthor, { root }: References): ProtocolFault | undefined {
  return entity.author === root?.author || signature === 'valid' ? undefined : 'SignatureVerificationFailed'
}

/** To the author of a local root comes whoever wrote it; everybody else hears of it from the author of the root. */
function sentToOrByRootAuthor({ entity, sender }: SignedByAuthor, { root }: References): ProtocolFault | undefined {
  if (sender === root?.author) return undefined
  return sender === entity.author && root?.local ? undefined : 'InvalidSender'
}

function postIsLocal(_arrival: Arrival, { root }: References): ProtocolFault | undefined {
  return root?.local ? undefined : 'ParentNotLocal'
}

function tellsNothingPrivate({ entity, recipient }: Arrival<ProfileEntity>): ProtocolFault | undefined {
  if (recipient !== undefined || entity.public) return undefined
  const details = [entity.bio, entity.birthday, entity.gender, entity.location]
  return details.every((detail) => detail === undefined) ? undefined : 'NotPublic'
}

// An encrypted message can be encrypted anew for somebody else by whoever received it.
function forRecipient({ entity, recipient }: Arrival<OfType<'contact'>>): ProtocolFault | undefined {
  return entity.recipient === recipient ? undefined : 'RecipientMismatch'
}

function amongParticipants({ entity, recipient }: Arrival<ConversationEntity>): ProtocolFault | undefined {
  const { participants, author } = entity
  const complete = recipient !== undefined && participants.includes(recipient) && participants.includes(author)
  return complete ? undefined : 'RecipientMismatch'
}

function withinConversation(
  { entity, recipient }: Arrival<OfType<'message'>>,
  { conversation }: References,
): ProtocolFault | undefined {
  if (conversation === undefined) return 'ConversationNotFound'
  const { participants } = conversation
  if (recipient === undefined || !participants.includes(recipient)) return 'RecipientMismatch'
  return participants.includes(entity.author) ? undefined : 'InvalidAuthor'
}

function personOnlyPrivately({ entity, recipient }: Arrival<RetractionEntity>): ProtocolFault | undefined {
  return entity.target_type === 'Person' && recipient === undefined ? 'NotPublic' : undefined
}

function targetKnown(_arrival: Arrival, { target }: References): ProtocolFault | undefined {
  return target === undefined ? 'TargetNotFound' : undefined
}

const retractedByRootAuthorToo: ReadonlySet<RetractionEntity['target_type']> = new Set([
  'Comment',
  'Like',
  'PollParticipation',
])

function mayRetract({ entity, sender }: Arrival<RetractionEntity>, { target }: References): ProtocolFault | undefined {
  if (sender === target?.author) return undefined
  const asRootAuthor = retractedByRootAuthorToo.has(entity.target_type) && sender === target?.root?.author
  return asRootAuthor ? undefined : 'InvalidSender'
}

function witnessSigned({ signature }: Arrival): ProtocolFault | undefined {
  return signature === 'valid' ? undefined : 'SignatureVerificationFailed'
}

function notStored(): ProtocolFault {
  return 'UnknownEntity'
}
