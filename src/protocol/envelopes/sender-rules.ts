import type { ConversationEntity } from '../entities/conversations.js'
import type { ProfileEntity } from '../entities/people.js'
import { isRelayableKind, RETRACTED_RECORDS, type ReceivedEntity, type StoredRelayable } from '../entities/registry.js'
import type { RetractionEntity } from '../entities/retraction.js'
import type { ProtocolFault } from '../errors.js'
import type { InnerSignature } from './verify-envelope.js'

/** A stored entity that a received one refers to. */
export interface ReferencedEntity {
  readonly author: string
  readonly isLocal: boolean
  readonly isPublic: boolean
}

/** The stored entities that a received one refers to. The thread post is the post above a parent: the post of a liked comment. */
export interface References {
  /** Comments, likes, votes: the post of the thread. Reshares: the reshared post. Participations: the post. */
  readonly threadPost?: ReferencedEntity | undefined
  /** Retractions: the target, with its thread post if it is a relayable. */
  readonly target?:
    | { readonly author: string; readonly threadPost?: { readonly author: string } | undefined }
    | undefined
  /** Messages: their conversation. */
  readonly conversation?: { readonly participants: readonly string[] } | undefined
}

/** A received entity with the data about its sender that the rules check. */
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
  message: SenderCheck<Entity>,
  references: References,
) => ProtocolFault | undefined
type OfType<T extends Type> = Extract<ReceivedEntity, { readonly type: T }>

/** The rules for each type of entity; the first fault counts (FEDERATION.md, "Who may send what"). */
const RULES: { readonly [T in Type]: readonly Rule<OfType<T>>[] } = {
  status_message: [faultUnlessSentByAuthor, faultUnlessMarkedPublic],
  photo: [faultUnlessSentByAuthor, faultUnlessMarkedPublic],
  reshare: [faultUnlessSentByAuthor, faultUnlessRootMayBeReshared],
  comment: [faultUnlessThreadPostKnown, faultUnlessAuthorSigned, faultUnlessSentToOrByThreadAuthor],
  like: [faultUnlessThreadPostKnown, faultUnlessAuthorSigned, faultUnlessSentToOrByThreadAuthor],
  poll_participation: [faultUnlessThreadPostKnown, faultUnlessAuthorSigned, faultUnlessSentToOrByThreadAuthor],
  event_participation: [faultForUnstoredType],
  event: [faultForUnstoredType],
  participation: [faultUnlessSentByAuthor, faultUnlessPostIsLocal],
  profile: [faultUnlessSentByAuthor, faultIfPrivateDetails],
  contact: [faultUnlessSentByAuthor, faultUnlessPrivate, faultUnlessForRecipient],
  conversation: [faultUnlessSentByAuthor, faultUnlessPrivate, faultUnlessAmongParticipants],
  message: [faultUnlessSentByAuthor, faultUnlessPrivate, faultUnlessWithinConversation],
  retraction: [faultIfPersonPublicly, faultUnlessTargetKnown, faultUnlessMayRetract],
  account_deletion: [faultUnlessSentByAuthor],
  account_migration: [faultUnlessSentByAuthor, faultUnlessOtherIdentitySigned],
}

/** The fault of an entity in a valid envelope; `undefined`: it may be stored. */
export function findSenderFault(message: SenderCheck, references: References): ProtocolFault | undefined {
  const applicableRules = RULES[message.entity.type] as readonly Rule<ReceivedEntity>[] // the table pairs each type with its rules
  for (const rule of applicableRules) {
    const fault = rule(message, references)
    if (fault !== undefined) return fault
  }
  return undefined
}

type Authored = SenderCheck<Extract<ReceivedEntity, { readonly author: string }>>
type SignedByAuthor = SenderCheck<StoredRelayable>

function faultUnlessSentByAuthor({ entity, sender }: Authored): ProtocolFault | undefined {
  return sender === entity.author ? undefined : 'InvalidSender'
}

function faultUnlessMarkedPublic({
  entity,
  recipient,
}: SenderCheck<OfType<'status_message' | 'photo'>>): ProtocolFault | undefined {
  return recipient !== undefined || entity.public ? undefined : 'NotPublic'
}

function faultUnlessPrivate({ recipient }: SenderCheck): ProtocolFault | undefined {
  return recipient === undefined ? 'NotPublic' : undefined
}

function faultUnlessRootMayBeReshared(
  { entity }: SenderCheck<OfType<'reshare'>>,
  { threadPost }: References,
): ProtocolFault | undefined {
  if (entity.root_author === undefined) return undefined
  if (threadPost === undefined) return 'NotFetchable'
  if (threadPost.author !== entity.root_author) return 'ValidationError'
  return threadPost.isPublic ? undefined : 'NotAllowed'
}

function faultUnlessThreadPostKnown(_message: SenderCheck, { threadPost }: References): ProtocolFault | undefined {
  return threadPost === undefined ? 'NotFetchable' : undefined
}

/** The author of the thread post needs no inner signature: the same key signs the envelope. */
function faultUnlessAuthorSigned(
  { entity, signature }: SignedByAuthor,
  { threadPost }: References,
): ProtocolFault | undefined {
  return entity.author === threadPost?.author || signature === 'valid' ? undefined : 'SignatureVerificationFailed'
}

/** Authors send relayables to the pod of the thread post; all other pods receive them from its author. */
function faultUnlessSentToOrByThreadAuthor(
  { entity, sender }: SignedByAuthor,
  { threadPost }: References,
): ProtocolFault | undefined {
  if (sender === threadPost?.author) return undefined
  return sender === entity.author && threadPost?.isLocal ? undefined : 'InvalidSender'
}

function faultUnlessPostIsLocal(_message: SenderCheck, { threadPost }: References): ProtocolFault | undefined {
  return threadPost?.isLocal ? undefined : 'ParentNotLocal'
}

function faultIfPrivateDetails({ entity, recipient }: SenderCheck<ProfileEntity>): ProtocolFault | undefined {
  if (recipient !== undefined || entity.public) return undefined
  const details = [entity.bio, entity.birthday, entity.gender, entity.location]
  return details.every((detail) => detail === undefined) ? undefined : 'NotPublic'
}

// A recipient could encrypt the signed message again for another person.
function faultUnlessForRecipient({ entity, recipient }: SenderCheck<OfType<'contact'>>): ProtocolFault | undefined {
  return entity.recipient === recipient ? undefined : 'RecipientMismatch'
}

function faultUnlessAmongParticipants({
  entity,
  recipient,
}: SenderCheck<ConversationEntity>): ProtocolFault | undefined {
  const { participants, author } = entity
  const isComplete = recipient !== undefined && participants.includes(recipient) && participants.includes(author)
  return isComplete ? undefined : 'RecipientMismatch'
}

function faultUnlessWithinConversation(
  { entity, recipient }: SenderCheck<OfType<'message'>>,
  { conversation }: References,
): ProtocolFault | undefined {
  if (conversation === undefined) return 'ConversationNotFound'
  const { participants } = conversation
  if (recipient === undefined || !participants.includes(recipient)) return 'RecipientMismatch'
  return participants.includes(entity.author) ? undefined : 'InvalidAuthor'
}

function faultIfPersonPublicly({ entity, recipient }: SenderCheck<RetractionEntity>): ProtocolFault | undefined {
  return entity.target_type === 'Person' && recipient === undefined ? 'NotPublic' : undefined
}

function faultUnlessTargetKnown(_message: SenderCheck, { target }: References): ProtocolFault | undefined {
  return target === undefined ? 'TargetNotFound' : undefined
}

/** Comments, likes and votes are also retracted by the author of their post. */
function faultUnlessMayRetract(
  { entity, sender }: SenderCheck<RetractionEntity>,
  { target }: References,
): ProtocolFault | undefined {
  if (sender === target?.author) return undefined
  const isRelayable = entity.target_type !== 'Person' && isRelayableKind(RETRACTED_RECORDS[entity.target_type])
  return isRelayable && sender === target?.threadPost?.author ? undefined : 'InvalidSender'
}

function faultUnlessOtherIdentitySigned({ signature }: SenderCheck): ProtocolFault | undefined {
  return signature === 'valid' ? undefined : 'SignatureVerificationFailed'
}

function faultForUnstoredType(): ProtocolFault {
  return 'UnknownEntity'
}
