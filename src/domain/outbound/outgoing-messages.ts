import type { Knex } from 'knex'
import { knockAfter } from '../../jobs/outbox/enqueue-deliveries.js'
import { deleteCreations, type RecordKey } from '../../persistence/outbound/cancel-deliveries.js'
import { DELIVERY_PRIORITY, type DeliveryPriority } from '../../persistence/outbound/delivery-priority.js'
import {
  insertDeliveries,
  insertPersonalDeliveries,
  insertRelays,
  type NewRelay,
  type RecipientSelector,
} from '../../persistence/outbound/insert-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { type Entity, writeEntity } from '../../protocol/entities/registry.js'

export type { RecipientSelector }

/** One envelope that leaves this pod. */
export interface OutgoingMessage {
  /** The kind of record it is about: 'post', 'comment' … */
  readonly record: string
  readonly guid: string
  readonly verb: 'create' | 'retract'
  /** Whose key signs the envelope; lives here. */
  readonly senderId: number
  readonly public: boolean
  readonly entity: Entity
  /** Not set: own words. */
  readonly priority?: DeliveryPriority
}

/**
 * Writes an envelope and its deliveries in the caller's transaction, and knocks at the pods after the commit: public, one for
 * each pod of the audience; private, one for each person. A repeat makes no second envelope, except of a profile or a contact.
 */
export async function enqueueMessage(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  message: OutgoingMessage,
  audience: RecipientSelector,
): Promise<void> {
  const row = rowOf(message)
  const reached = await insertDeliveries(transaction, row, audience)
  knockAfter(pod, transaction, reached)
}

/** The same for any number of envelopes that are for one person each. */
export async function enqueuePersonalMessages(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly (OutgoingMessage & { readonly personId: number })[],
): Promise<void> {
  const reached = await insertPersonalDeliveries(transaction, messages.map(rowOf))
  knockAfter(pod, transaction, reached)
}

/** A relayable of another pod that the subscribers of a local post receive. */
export type Relay = OutgoingMessage & Pick<NewRelay, 'postId' | 'commentId' | 'authorId'>

/** Writes the envelopes of any number of relays and their deliveries in the caller's transaction. */
export async function enqueueRelays(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  relays: readonly Relay[],
): Promise<void> {
  const reached = await insertRelays(transaction, relays.map(rowOf))
  knockAfter(pod, transaction, reached)
}

function rowOf<Message extends OutgoingMessage>(message: Message) {
  return { ...message, priority: message.priority ?? DELIVERY_PRIORITY.own, entity: writeEntity(message.entity) }
}

/**
 * What is deleted need not be told any more to those who have not heard of it. Called after the deletion in its transaction,
 * so that a dispatch that holds the record has come to its end.
 */
export async function cancelCreations(transaction: Knex.Transaction, gone: readonly RecordKey[]): Promise<void> {
  await deleteCreations(transaction, gone)
}
