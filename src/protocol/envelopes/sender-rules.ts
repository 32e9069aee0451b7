import type { ConversationEntity } from '../entities/conversations.js'
import type { ProfileEntity } from '../entities/people.js'
import { isRelayableKind, RETRACTED_RECORDS, type ReceivedEntity, type StoredRelayable } from '../entities/registry.js'
import type { RetractionEntity } from '../entities/retraction.js'
import type { ProtocolFault } from '../errors.js'
import type { InnerSignature } from './verify-envelope.js'

/** A stored entity that a received one refers to. */
export interface ReferencedEntity {
  readonly author: string
  readonly local: boolean
  readonly public: boolean
}

/** The stored entities that a received one refers to. The root is the post above a parent: the post of a liked comment. */
export interface References {
  /** Comments, likes, votes: the root. Reshares: the reshared post. Participations: the post. */
  readonly root?: ReferencedEntity | undefined
  /** Retractions: the target, with its root if it is a relayable. */
  readonly target?: { readonly author: string; readonly root?: { readonly author: string } | undefined } | undefined
  /** Messages: their conversation. */
  readonly conversation?: { readonly participants: readonly string[] } | undefined
}

/** A received entity with the facts about its sender that the rules check. */
export interface SenderCheck<Entity extends ReceivedEntity = ReceivedEntity> {
  readonly entity: Entity
  /** The signer of the envelope. */
  readonly sender: string
  /** The local person that a private message was encrypted for; `undefined`: a public message. */
  readonly recipient?: string | undefined
  /** The state of the signature inside a relayable or migration. */
  readonly signature: InnerSignature
}

type Type = ReceivedEntity['type']
type Rule<Entity extends ReceivedEntity> = (
  arrival: SenderCheck<Entity>,
  references: References,
) => ProtocolFault | undefined
type OfType<T extends Type> = Extract<ReceivedEntity, { readonly type: T }>

/** The rules for each type of entity; the first fault counts (FEDERATION.md, "Who may send what"). */
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
  profile: [sentByAuthor, hasNoPrivateDetails],
  contact: [sentByAuthor, privateOnly, forRecipient],
  conversation: [sentByAuthor, privateOnly, amongParticipants],
  message: [sentByAuthor, privateOnly, withinConversation],
  retraction: [personOnlyPrivately, targetKnown, mayRetract],
  account_deletion: [sentByAuthor],
  account_migration: [sentByAuthor, witnessSigned],
}

/** The fault of an entity in a valid envelope; `undefined`: it may be stored. */
export function faultOfArrival(arrival: SenderCheck, references: References): ProtocolFault | undefined {
  const applicableRules = rules[arrival.entity.type] as readonly Rule<ReceivedEntity>[] // the table pairs each type with its rules
  for (const rule of applicableRules) {
    const fault = rule(arrival, references)
    if (fault !== undefined) return fault
  }
  return undefined
}

type Authored = SenderCheck<Extract<ReceivedEntity, { readonly author: string }>>
type SignedByAuthor = SenderCheck<StoredRelayable>

function sentByAuthor({ entity, sender }: Authored): ProtocolFault | undefined {
  return sender === entity.author ? undefined : 'InvalidSender'
}

function markedPublic({
  entity,
  recipient,
}: SenderCheck<OfType<'status_message' | 'photo'>>): ProtocolFault | undefined {
  return recipient !== undefined || entity.public ? undefined : 'NotPublic'
}

function privateOnly({ recipient }: SenderCheck): ProtocolFault | undefined {
  return recipient === undefined ? 'NotPublic' : undefined
}

function rootMayBeReshared(
  { entity }: SenderCheck<OfType<'reshare'>>,
  { root }: References,
): ProtocolFault | undefined {
  if (entity.root_author === undefined) return undefined
  if (root === undefined) return 'NotFetchable'
  if (root.author !== entity.root_author) return 'ValidationError'
  return root.public ? undefined : 'NotAllowed'
}

function rootKnown(_arrival: SenderCheck, { root }: References): ProtocolFault | undefined {
  return root === undefined ? 'NotFetchable' : undefined
}

/** The author of the root needs no inner signature: the same key signs the envelope. */
function authorSigned({ entity, signature }: SignedByAuthor, { root }: References): ProtocolFault | undefined {
  return entity.author === root?.author || signature === 'valid' ? undefined : 'SignatureVerificationFailed'
}

/** Authors send relayables to the pod of the root; all other pods receive them from the author of the root. */
function sentToOrByRootAuthor({ entity, sender }: SignedByAuthor, { root }: References): ProtocolFault | undefined {
  if (sender === root?.author) return undefined
  return sender === entity.author && root?.local ? undefined : 'InvalidSender'
}

function postIsLocal(_arrival: SenderCheck, { root }: References): ProtocolFault | undefined {
  return root?.local ? undefined : 'ParentNotLocal'
}

function hasNoPrivateDetails({ entity, recipient }: SenderCheck<ProfileEntity>): ProtocolFault | undefined {
  if (recipient !== undefined || entity.public) return undefined
  const details = [entity.bio, entity.birthday, entity.gender, entity.location]
  return details.every((detail) => detail === undefined) ? undefined : 'NotPublic'
}

// A recipient could encrypt the signed message again for another person.
function forRecipient({ entity, recipient }: SenderCheck<OfType<'contact'>>): ProtocolFault | undefined {
  return entity.recipient === recipient ? undefined : 'RecipientMismatch'
}

function amongParticipants({ entity, recipient }: SenderCheck<ConversationEntity>): ProtocolFault | undefined {
  const { participants, author } = entity
  const isComplete = recipient !== undefined && participants.includes(recipient) && participants.includes(author)
  return isComplete ? undefined : 'RecipientMismatch'
}

function withinConversation(
  { entity, recipient }: SenderCheck<OfType<'message'>>,
  { conversation }: References,
): ProtocolFault | undefined {
  if (conversation === undefined) return 'ConversationNotFound'
  const { participants } = conversation
  if (recipient === undefined || !participants.includes(recipient)) return 'RecipientMismatch'
  return participants.includes(entity.author) ? undefined : 'InvalidAuthor'
}

function personOnlyPrivately({ entity, recipient }: SenderCheck<RetractionEntity>): ProtocolFault | undefined {
  return entity.target_type === 'Person' && recipient === undefined ? 'NotPublic' : undefined
}

function targetKnown(_arrival: SenderCheck, { target }: References): ProtocolFault | undefined {
  return target === undefined ? 'TargetNotFound' : undefined
}

/** Comments, likes and votes are also retracted by the author of their post. */
function mayRetract(
  { entity, sender }: SenderCheck<RetractionEntity>,
  { target }: References,
): ProtocolFault | undefined {
  if (sender === target?.author) return undefined
  const isRelayable = entity.target_type !== 'Person' && isRelayableKind(RETRACTED_RECORDS[entity.target_type])
  return isRelayable && sender === target?.root?.author ? undefined : 'InvalidSender'
}

function witnessSigned({ signature }: SenderCheck): ProtocolFault | undefined {
  return signature === 'valid' ? undefined : 'SignatureVerificationFailed'
}

function notStored(): ProtocolFault {
  return 'UnknownEntity'
}
