import type { Knex } from 'knex'
import { isUndispatched } from '../../jobs/outbox/outbox.js'
import { lockThings } from '../../jobs/waiting/waiting-messages.js'
import { Person } from '../../persistence/models/person.js'
import { Tombstone } from '../../persistence/models/tombstone.js'
import { deleteRetractions, deleteRetractionsOfUnsentCreations } from '../../persistence/outbound/cancel-deliveries.js'
import { type Destroyed, type DestructibleKind, destroyEntities } from '../../persistence/posts/destroy-entities.js'
import type { Pod } from '../../pod/pod.js'
import type { TargetType } from '../../protocol/entities/retraction.js'
import { cancelCreations, enqueueMessage, type RecipientSelector } from '../outbound/outgoing-messages.js'

/** Something that one of our people takes back. */
export interface EntityToRetract {
  readonly kind: DestructibleKind
  /** As other pods call it. */
  readonly type: TargetType
  readonly id: number
  readonly guid: string
  readonly authorId: number
  /** Its author, or the author of the post it is under. */
  readonly retractedById: number
  readonly public: boolean
  readonly recipients: RecipientSelector
}

/**
 * Destroys it with all that is under it, tells everybody who has it, and leaves a tombstone in case it comes by once more;
 * its lock is held, so that this is not at the very same moment. A pod to which nothing of it was sent receives no retraction
 * either. False: somebody else has taken it back meanwhile.
 */
export async function retractEntity(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  { kind, type, id, guid, authorId, retractedById: byId, recipients: audience, ...taken }: EntityToRetract,
): Promise<boolean> {
  await lockThings(transaction, [`${kind}:${guid}`])
  const author = await Person.query(transaction).findById(authorId).throwIfNotFound()
  const by = await Person.query(transaction).findById(byId).throwIfNotFound()
  const entity = { type: 'retraction', author: author.address, target_guid: guid, target_type: type } as const
  const message = { record: kind, guid, verb: 'retract', senderId: byId, public: taken.public, entity } as const
  // First of all: who has it is known only as long as it is here.
  await enqueueMessage(pod, transaction, message, audience)
  const gone = await destroyEntities(transaction, kind, [id])
  // The record is gone, so a dispatch of it has either come to its end or will find nothing.
  if (await isUndispatched(transaction, authorId, { record: kind, guid })) await deleteRetractions(transaction, message)
  else await deleteRetractionsOfUnsentCreations(transaction, kind, [guid])
  await cancelCreations(transaction, gone)
  await Tombstone.insertMany(transaction, [{ type, guid, by: by.address }])
  return gone.length > 0
}

/** Destroys any number of one kind and tells what is gone; what other pods have not heard of yet they are not told any more. */
export async function destroyAndCancelCreations(
  transaction: Knex.Transaction,
  kind: DestructibleKind,
  ids: readonly number[],
): Promise<readonly Destroyed[]> {
  const gone = await destroyEntities(transaction, kind, ids)
  await cancelCreations(transaction, gone)
  return gone
}
