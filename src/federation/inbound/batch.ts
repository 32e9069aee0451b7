import type { FetchRequest } from '../../jobs/definitions.js'
import type { NewJob } from '../../jobs/outbox/enqueue-jobs.js'
import type { EntityKey } from '../../jobs/waiting/entity-key.js'
import type { PostVisibility } from '../../persistence/inbound/insert-posts.js'
import type { ReceivableEntity, ReceivedEntity } from '../../protocol/entities/registry.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import type { InnerSignature } from '../../protocol/envelopes/verify-envelope.js'
import type { ProtocolFault } from '../../protocol/errors.js'
import type { Signer } from './find-signers.js'

/** A message from another pod, as it was posted to this pod or fetched by it. */
export interface InboundMessage {
  /** The body as it was posted; for a private message the encrypted envelope. */
  readonly envelope: string
  readonly acceptedAt: Date
  /** Set for a private message: the guid of its local recipient. */
  readonly recipientGuid?: string
  /** The network address that posted the message; an IPv6 address stands for its /64. */
  readonly source?: string | undefined
  /** The id of the request that posted it. */
  readonly trace?: string | undefined
  /** Set for a message that this pod has fetched: the entity it requested. */
  readonly fetchRequest?: FetchRequest
  /** Set for a message that has waited: its outbox row, and how often it has waited. */
  readonly resumed?: { readonly outboxId: number; readonly times: number; readonly last: boolean }
  /** Set for the message of a move that a lookup has fetched: the moves that were followed to it, and itself. */
  readonly movesFollowed?: number | undefined
  /** Set for a message that is replayed from the quarantine: its row there. */
  readonly quarantineId?: number | undefined
  /** An admin has released it from the quarantine: filters do not apply. */
  readonly isReleased?: boolean | undefined
}

/** The local person that a private message was encrypted for. */
export interface InboundRecipient {
  readonly userId: number
  readonly personId: number
  readonly guid: string
  readonly address: string
  readonly isClosed: boolean
}

/** A message with its decrypted envelope, its entity and a valid signature of the sender. */
export interface VerifiedMessage<Entity extends ReceivedEntity = ReceivedEntity> {
  readonly inbound: InboundMessage
  /** The address in the envelope. The sender has signed the envelope, but is not always the author of the entity. */
  readonly sender: string
  readonly signer: Signer
  readonly entity: Entity
  /** The author of the entity, if this pod knows them; the same object as `signer` if they are the sender. */
  readonly author?: Signer | undefined
  /** The signature inside a relayable or a migration. */
  readonly signature: InnerSignature
  /** People whose first valid signature this pod has just seen, on the envelope or the entity. */
  readonly firstSigned?: readonly string[] | undefined
  /** Set for a private message. */
  readonly recipient?: InboundRecipient | undefined
  /** The address that the author has signed with, and has moved away from since. */
  readonly movedFrom?: string | undefined
}

/** A message with the entities that it refers to, and all that `authorise` decides on. */
export interface ResolvedMessage extends VerifiedMessage<ReceivableEntity> {
  readonly references: References
  /** The post it belongs to is local. */
  readonly isParentLocal: boolean
  /** The entity or its parent was retracted before it arrived. */
  readonly isDeleted: boolean
  /** A photo or a poll was removed from the post, because another author has used its guid. */
  readonly hasLostParts: boolean
  /** The named author has an account on this pod. */
  readonly isAuthorLocal: boolean
  /** The parent is stored, but the author of the entity does not receive it. */
  readonly hasUnreadableParent: boolean
}

/** A message as it is stored: authorised, or part of an archive. */
export interface StorableMessage<Entity extends ReceivableEntity = ReceivableEntity> extends VerifiedMessage<Entity> {
  /** The post it belongs to is local, so this pod relays the entity to the readers of the post. */
  readonly isParentLocal: boolean
}

/** A message that refers to an entity or a person that this pod does not know yet. */
export interface WaitingMessage {
  readonly inbound: InboundMessage
  readonly waitsFor: EntityKey
  /** The fault of its dead letter, when the waiting time is over. */
  readonly fault: ProtocolFault
  /** A person whose pod should have the entity, and a second one. Undefined: no pod is requested, the entity may only arrive. */
  readonly fetchFrom?: string | undefined
  readonly fallbackFetchFrom?: string | undefined
  /** The fetched entity must be by this author. */
  readonly author?: string | undefined
  /** Maximum waiting time in seconds. */
  readonly maxWaitSeconds?: number
  /** The verified or claimed signer of the envelope; limits on waiting messages count by the host of this address. */
  readonly sender: string
  /** The signature of the sender was verified. */
  readonly isVerified: boolean
  /** Set once the envelope is open. */
  readonly message?: VerifiedMessage
}

/** A message that is invalid or not allowed; no later attempt can help. */
export interface RejectedMessage {
  readonly inbound: InboundMessage
  readonly fault: ProtocolFault
  readonly reason: string
  /** The readable envelope of a private message that was decrypted but not opened. */
  readonly envelope?: string
  /** Set once the envelope is open. */
  readonly message?: VerifiedMessage
}

/** A valid message without an effect, such as one from a blocked pod. */
export interface IgnoredMessage {
  readonly inbound: InboundMessage
  /** Set if a moderator of this pod has blocked the author. */
  readonly fault?: Extract<ProtocolFault, 'Moderated'>
  readonly reason: string
  /** The readable envelope of a private message that was decrypted but not opened. */
  readonly envelope?: string
  /** Set once the envelope is open. */
  readonly message?: VerifiedMessage
}

/** The result of each step: the messages for the next step, and the outcomes of the others. */
export interface StepResult<Ready> {
  readonly ready: readonly Ready[]
  readonly waiting: readonly WaitingMessage[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}

/** A batch before its transaction: each message is in one list. */
export type SortedBatch = StepResult<ResolvedMessage>

/** An inserted or changed row. A repeated message has none, so it causes no follow-up work. */
export interface StoredRecord<Entity extends ReceivableEntity = ReceivableEntity> {
  /** Id of the row: post, comment, like, vote, participation, conversation, message or photo. For all other entities, id of the person. */
  readonly id: number
  readonly message: StorableMessage<Entity>
}

/** The result of storing entities of one type. Repeated messages are in none of the lists. */
export interface StoreResult<Entity extends ReceivableEntity = ReceivableEntity> {
  readonly records: readonly StoredRecord<Entity>[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored?: readonly IgnoredMessage[]
  /** Public posts that were stored before, and were sent to this pod now. */
  readonly redelivered?: readonly StoredRecord<Entity>[]
  /** Private posts, new or stored before, that became visible to their local recipients. */
  readonly newlyVisible?: readonly PostVisibility[]
  /** Jobs that the caller enqueues in the same transaction: they relay interactions with local posts. */
  readonly relayJobs?: readonly NewJob[]
}
