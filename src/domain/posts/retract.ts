import type { Knex } from 'knex'
import { isUndispatched } from '../../jobs/outbox/sender-rows.js'
import { lockEntityKeys } from '../../jobs/waiting/lock-entity-keys.js'
import { Person } from '../../persistence/models/person.js'
import { Tombstone } from '../../persistence/models/tombstone.js'
import { deleteRetractions, deleteRetractionsOfUnsentCreations } from '../../persistence/outbound/delete-messages.js'
import { type DestroyedEntity, destroyEntities } from '../../persistence/posts/destroy-entities.js'
import type { RetractableKind } from '../../protocol/entities/registry.js'
import type { TargetType } from '../../protocol/entities/retraction.js'
import type { Services } from '../../services/services.js'
import { cancelCreations, type RecipientSelector, storeMessage } from '../outbound/outgoing-messages.js'

/** An entity of a local person that is to be retracted. */
export interface EntityToRetract {
  readonly kind: RetractableKind
  /** Type name in the retraction message. */
  readonly type: TargetType
  readonly id: number
  readonly guid: string
  readonly authorId: number
  /** The author, or the author of the parent post. */
  readonly retractedById: number
  readonly public: boolean
  readonly recipients: RecipientSelector
}

/**
 * Deletes an entity with its interactions, sends a retraction to all recipients, and stores a tombstone against a later copy from
 * the network. An advisory lock on the guid keeps such a copy out in the meantime. Pods to which the creation was never sent receive no
 * retraction. False: the entity was already deleted.
 */
export async function retractEntity(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { kind, type, id, guid, authorId, retractedById, public: isPublic, recipients }: EntityToRetract,
): Promise<boolean> {
  await lockEntityKeys(transaction, [`${kind}:${guid}`])
  const author = await Person.query(transaction).findById(authorId).throwIfNotFound()
  const retractedBy = await Person.query(transaction).findById(retractedById).throwIfNotFound()
  const entity = { type: 'retraction', author: author.address, target_guid: guid, target_type: type } as const
  const message = { record: kind, guid, verb: 'retract', senderId: retractedById, public: isPublic, entity } as const
  // Before the deletion, which removes the relations that determine the recipients.
  await storeMessage(services, transaction, message, recipients)
  const destroyedEntities = await destroyEntities(transaction, kind, [id])
  // The record is deleted: its dispatch has either ended or will find no record.
  if (await isUndispatched(transaction, authorId, { record: kind, guid })) await deleteRetractions(transaction, message)
  else await deleteRetractionsOfUnsentCreations(transaction, kind, [guid])
  await cancelCreations(transaction, destroyedEntities)
  await Tombstone.insertMany(transaction, [{ type, guid, by: retractedBy.address }])
  return destroyedEntities.length > 0
}

/** Deletes entities of one kind and their undelivered creations. Returns the deleted entities. */
export async function destroyWithCreations(
  transaction: Knex.Transaction,
  kind: RetractableKind,
  ids: readonly number[],
): Promise<readonly DestroyedEntity[]> {
  const destroyedEntities = await destroyEntities(transaction, kind, ids)
  await cancelCreations(transaction, destroyedEntities)
  return destroyedEntities
}
