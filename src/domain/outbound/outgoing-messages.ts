import type { Knex } from 'knex'
import { startDeliveriesAfterCommit } from '../../jobs/outbox/start-deliveries.js'
import { findTrace } from '../../persistence/database/transactions.js'
import { deleteCreations, type RecordKey } from '../../persistence/outbound/delete-messages.js'
import { DELIVERY_PRIORITY, type DeliveryPriority } from '../../persistence/outbound/delivery-priority.js'
import {
  insertDeliveries,
  insertPersonalDeliveries,
  insertRelays,
  type NewRelay,
  type RecipientSelector,
} from '../../persistence/outbound/insert-deliveries.js'
import type { OutboundRecord, OutboundVerb } from '../../persistence/outbound/outbound-record.js'
import { writeEntity } from '../../protocol/entities/entity-xml.js'
import type { Entity } from '../../protocol/entities/registry.js'
import type { Services } from '../../services/services.js'

export type { RecipientSelector }

/** A message to other pods, which becomes one envelope. */
export interface OutgoingMessage {
  readonly record: OutboundRecord
  readonly guid: string
  readonly verb: OutboundVerb
  /** The local person whose key signs the envelope. Null: the account of the pod. */
  readonly senderId: number | null
  readonly public: boolean
  readonly entity: Entity
  /** Default: `localUsers`. */
  readonly priority?: DeliveryPriority
  /** Default: that of the transaction. */
  readonly trace?: string | null
}

/**
 * Stores a message and its deliveries in the caller's transaction, and enqueues delivery jobs after the commit. A public message has
 * one delivery for each pod, a private one for each person. A repeat stores no second message, except of a profile or a contact.
 */
export async function storeMessage(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  message: OutgoingMessage,
  recipients: RecipientSelector,
): Promise<void> {
  const row = rowOf(transaction, message)
  const duePods = await insertDeliveries(transaction, row, recipients)
  startDeliveriesAfterCommit(services, transaction, duePods)
}

/** Stores any number of messages for one person each, as `storeMessage`. */
export async function storePersonalMessages(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly (OutgoingMessage & { readonly personId: number })[],
): Promise<void> {
  const duePods = await insertPersonalDeliveries(
    transaction,
    messages.map((message) => rowOf(transaction, message)),
  )
  startDeliveriesAfterCommit(services, transaction, duePods)
}

/** A relayable of another pod that the subscribers of a local post receive. */
export type Relay = OutgoingMessage & Pick<NewRelay, 'postId' | 'commentId' | 'authorId'>

/** Stores any number of relays and their deliveries, as `storeMessage`. */
export async function storeRelays(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  relays: readonly Relay[],
): Promise<void> {
  const duePods = await insertRelays(
    transaction,
    relays.map((relay) => rowOf(transaction, relay)),
  )
  startDeliveriesAfterCommit(services, transaction, duePods)
}

function rowOf<Message extends OutgoingMessage>(transaction: Knex.Transaction, message: Message) {
  const { priority = DELIVERY_PRIORITY.localUsers, trace = findTrace(transaction) } = message
  return { ...message, priority, trace, entity: writeEntity(message.entity) }
}

/**
 * Deletes undelivered creations of deleted records. It runs after the deletion in its transaction: the deletion has waited for a
 * dispatch that locked the record.
 */
export async function cancelCreations(transaction: Knex.Transaction, gone: readonly RecordKey[]): Promise<void> {
  await deleteCreations(transaction, gone)
}
