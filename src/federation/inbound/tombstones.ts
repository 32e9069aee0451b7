import type { PhotoEntity } from '../../protocol/entities/posts.js'
import {
  ENTITY_TYPES,
  isRelayable,
  namesInRetractions,
  type ReceivableEntity,
} from '../../protocol/entities/registry.js'
import type { TargetType } from '../../protocol/entities/retraction.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import type { VerifiedMessage } from './batch.js'
import { type BatchReferences, hasUnreadableParent } from './batch-references.js'
import { listParents } from './receiving-rules.js'

type SignedEntity = Pick<VerifiedMessage<ReceivableEntity>, 'entity' | 'sender'>

/**
 * True if a person with the right to retract the entity did so before it arrived. Tombstones of other people do not count:
 * anyone could leave one for an entity that another person is about to write.
 */
export function wasRetractedBefore(
  { entity, sender }: SignedEntity,
  { threadPost, target }: References,
  { tombstones }: BatchReferences,
): boolean {
  if (tombstones.size === 0) return false
  if (entity.type === 'retraction') {
    // The target is not stored, and the sender has retracted it before.
    return target === undefined && tombstones.has(`${entity.target_type} ${entity.target_guid} ${sender}`)
  }
  const addresses = isRelayable(entity) ? [entity.author, threadPost?.author] : [entity.author]
  return 'guid' in entity && hasTombstone(ENTITY_TYPES[entity.type].retractedAs, entity.guid, addresses, tombstones)
}

/**
 * True if a local person, or the sender, has deleted the parent of the entity. Tombstones of other people do not count. A remote post
 * that moderators have removed is still stored, hidden, with tombstones of a local person and of its author.
 */
export function isParentDeleted(
  { entity, sender }: SignedEntity,
  { threadPost }: References,
  batch: BatchReferences,
): boolean {
  const { tombstones, localTombstones } = batch
  if (tombstones.size === 0 || hasUnreadableParent(entity, batch)) return false
  return listParents(entity).some(({ kind, guid }) =>
    namesInRetractions(kind).some((type) => {
      const isDeletedHere = localTombstones.has(`${type} ${guid}`)
      if (threadPost === undefined) return isDeletedHere || tombstones.has(`${type} ${guid} ${sender}`)
      return (
        kind === 'post' &&
        isDeletedHere &&
        !threadPost.isLocal &&
        tombstones.has(`${type} ${guid} ${threadPost.author}`)
      )
    }),
  )
}

/** True for a photo of a post whose author has retracted it before the post arrived. */
export function isPhotoRetracted({ guid, author }: PhotoEntity, { tombstones }: BatchReferences): boolean {
  return hasTombstone(ENTITY_TYPES.photo.retractedAs, guid, [author], tombstones)
}

function hasTombstone(
  types: readonly TargetType[],
  guid: string,
  addresses: readonly (string | undefined)[],
  tombstones: BatchReferences['tombstones'],
): boolean {
  if (tombstones.size === 0) return false
  return types.some((type) => addresses.some((address) => tombstones.has(`${type} ${guid} ${address}`)))
}
