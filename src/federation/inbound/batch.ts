import type { WantedEntity } from '../../jobs/definitions.js'
import type { Thing } from '../../jobs/waiting/waiting-messages.js'
import type { ReceivedEntity } from '../../protocol/entities/registry.js'
import type { InnerSignature } from '../../protocol/envelopes/open-envelope.js'
import type { ProtocolFault } from '../../protocol/errors.js'
import type { Signer } from './find-signers.js'
import type { StorableEntity } from './store/storable-entity.js'

/** A message on its way in. */
export interface InboundMessage {
  /** The body as it was posted: of a private message the encrypted envelope. */
  readonly envelope: string
  readonly acceptedAt: Date
  /** Set for a private one: the person of this pod it was posted for. */
  readonly recipientGuid?: string
  /** The network address that posted it; an IPv6 address stands for its /64. */
  readonly source?: string | undefined
  /** Set for one that we have asked for ourselves. */
  readonly wanted?: WantedEntity
  /** Set for one that has waited: the row that stands for it. */
  readonly resumed?: { readonly outboxId: number; readonly times: number; readonly last: boolean }
}

/** The person of this pod that a private message was encrypted for. */
export interface Recipient {
  readonly userId: number
  readonly personId: number
  readonly guid: string
  readonly address: string
  readonly closed: boolean
}

/** A message whose envelope is open and whose signature fits. */
export interface Arrival<Entity extends ReceivedEntity = ReceivedEntity> {
  readonly message: InboundMessage
  /** Who signed the envelope, as it says; not always who wrote the entity. */
  readonly sender: string
  readonly signer: Signer
  readonly entity: Entity
  /** Who wrote the entity, if that is another person who is known here. */
  readonly author?: Signer | undefined
  /** Of a relayable or a migration. */
  readonly signature: InnerSignature
  /** The people who have signed the envelope, or the entity, and no message before it. */
  readonly firstSigned?: readonly string[] | undefined
  /** Set for a private one. */
  readonly recipient?: Recipient | undefined
  /** It stands under something of somebody who lives here: then it is passed on as it came. */
  readonly parentIsLocal?: boolean
}

/** It needs something that is not here. */
export interface WaitingMessage {
  readonly message: InboundMessage
  readonly waitsFor: Thing
  /** What it dies of when its time is over. */
  readonly fault: ProtocolFault
  /** Somebody whose pod should have it, and somebody else; undefined: it cannot be asked for, it may only come. */
  readonly askAt?: string | undefined
  readonly orAskAt?: string | undefined
  /** Only something of this author will do. */
  readonly author?: string | undefined
  /** Seconds it waits at most. */
  readonly patience?: number
  /** Who has signed the envelope, or only claims to have; the message counts for the host of this address. */
  readonly sender: string
  /** The signature of the sender was verified. */
  readonly signed: boolean
  /** Set once it was open. */
  readonly arrival?: Arrival
}

/** It is wrong for good. */
export interface RejectedMessage {
  readonly message: InboundMessage
  readonly fault: ProtocolFault
  readonly reason: string
  /** Set once it was open. */
  readonly arrival?: Arrival
}

/** Nothing is to be done about it, and nobody is at fault. */
export interface IgnoredMessage {
  readonly message: InboundMessage
  readonly reason: string
  /** Set once it was open. */
  readonly arrival?: Arrival
}

/** Each step says which messages go on, and what becomes of the others. */
export interface StepResult<Ready> {
  readonly ready: readonly Ready[]
  readonly waiting: readonly WaitingMessage[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}

/** What was really inserted; what was there already is not in it, so nothing follows from a repeat. */
export interface StoredRecord<Entity extends StorableEntity = StorableEntity> {
  /** Of the row: of a post, comment, like, vote, participation, conversation, message or photo; of a person for all else. */
  readonly id: number
  readonly arrival: Arrival<Entity>
}

export interface StoreResult<Entity extends StorableEntity = StorableEntity> {
  readonly records: readonly StoredRecord<Entity>[]
  readonly rejected: readonly RejectedMessage[]
  /** What is here already, or may not come any more. */
  readonly ignored?: readonly IgnoredMessage[]
}
