import { type EntityKey, UNREADABLE } from '../../jobs/waiting/entity-key.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import type { ReceivableEntity } from '../../protocol/entities/registry.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import { isAuthorised } from './authorise.js'
import type { Arrival, ResolvedArrival, StepResult, WaitingMessage } from './batch.js'
import {
  addEntityOfBatch,
  type BatchReferences,
  findBatchReferences,
  findReferences,
  hasUnreadableParent,
  isPartOfOtherAuthor,
} from './batch-references.js'
import { keyOfTarget, receivedType, storingRank } from './received-entities.js'
import { isWebUrl } from './store/photo-values.js'
import { hasDeletedParent, isPhotoRetracted, isRetracted } from './tombstones.js'

/**
 * Finds the entities that a batch refers to, with one statement for each kind of reference. A message with an unknown reference
 * has to wait for it.
 */
export async function resolveReferences(
  pod: Pick<Pod, 'config' | 'db'>,
  arrivals: readonly Arrival<ReceivableEntity>[],
): Promise<StepResult<ResolvedArrival>> {
  const batch = await findBatchReferences(
    pod,
    arrivals.map(({ entity }) => entity),
  )
  const ready: ResolvedArrival[] = []
  const waiting: WaitingMessage[] = []
  for (const arrival of inStoringOrder(arrivals)) {
    const resolved = resolve(pod, arrival, batch)
    const missing = missingReferenceOf(pod, resolved)
    if (missing !== undefined) {
      waiting.push({ message: arrival.message, arrival, sender: arrival.sender, signed: true, ...missing })
    } else {
      ready.push(resolved)
      if (canBeReferredTo(resolved, batch) && isAuthorised(resolved)) {
        addEntityOfBatch(resolved.entity, resolved.references, batch)
      }
    }
  }
  return { ready, waiting, rejected: [], ignored: [] }
}

/** Lists every field: spreading the arrival copies it name by name, which takes longer than the rest of this function. */
function resolve(
  { config }: Pick<Pod, 'config'>,
  arrival: Arrival<ReceivableEntity>,
  batch: BatchReferences,
): ResolvedArrival {
  const { message, sender, signer, author, signature, firstSigned, recipient, movedFrom } = arrival
  const whole = withoutUnusablePhotos(arrival.entity, batch)
  const entity = withoutPartsOfOtherAuthors(whole, batch)
  const references = findReferences(entity, batch)
  return {
    message,
    sender,
    signer,
    author,
    entity,
    signature,
    firstSigned,
    recipient,
    movedFrom,
    isParentLocal: references.root?.local ?? false,
    references,
    isDeleted: isRetracted(arrival, references, batch) || hasDeletedParent(arrival, references, batch),
    hasLostParts: entity !== whole,
    isAuthorLocal:
      movedFrom === undefined && receivedType(entity).isAuthorSource && entity.author.endsWith(`@${config.host}`),
    hasUnreadableParent: hasUnreadableParent(entity, batch),
  }
}

function inStoringOrder(arrivals: readonly Arrival<ReceivableEntity>[]): Arrival<ReceivableEntity>[] {
  return arrivals.toSorted((one, other) => storingRank(one.entity) - storingRank(other.entity))
}

/** Only retractions refer to an entity that has no children. */
function canBeReferredTo({ entity }: ResolvedArrival, { hasRetractions }: BatchReferences): boolean {
  return hasRetractions || receivedType(entity).parentsIn !== undefined
}

/** The unknown entity, and the pods that may have it. */
type MissingReference = Omit<WaitingMessage, 'message' | 'sender' | 'signed'>

/** The reference that a message has to wait for. A message that would be rejected in any case causes no request to another pod. */
function missingReferenceOf(pod: Pick<Pod, 'config'>, resolved: ResolvedArrival): MissingReference | undefined {
  const missing = unknownReferenceOf(pod, resolved)
  if (missing === undefined) return undefined
  const references = { ...bestCaseReferences(resolved), ...knownReferences(resolved.references) }
  return isAuthorised({ ...resolved, references }) ? missing : undefined
}

function unknownReferenceOf(
  { config }: Pick<Pod, 'config'>,
  { entity, sender, references, hasUnreadableParent }: ResolvedArrival,
): MissingReference | undefined {
  const reference = receivedType(entity).referenceOf(entity)
  if (reference === undefined) return undefined
  if ('target' in reference) {
    const waitsFor = keyOfTarget(reference.target)
    if (references.target !== undefined || waitsFor === undefined) return undefined
    return { waitsFor, fault: 'TargetNotFound', maxWaitSeconds: RETRACTION_WAIT_SECONDS }
  }
  if ('conversation' in reference) {
    if (references.conversation !== undefined) return undefined
    return { waitsFor: `conversation:${reference.conversation}`, fault: 'ConversationNotFound' }
  }
  if (references.root !== undefined) return undefined
  const { parent, author: fetchFrom = entity.author } = reference
  if (hostOf(fetchFrom) === config.host) return undefined // an unknown local entity has been deleted
  const fallbackFetchFrom = hostOf(sender) === hostOf(fetchFrom) ? undefined : sender
  const waitsFor: EntityKey = `${hasUnreadableParent ? UNREADABLE : ''}${parent.kind}:${parent.guid}`
  return { waitsFor, fault: 'NotFetchable', fetchFrom, fallbackFetchFrom }
}

/** Longer than a batch takes: the target may be in another batch that has not committed yet. */
const RETRACTION_WAIT_SECONDS = 60 * 60

/** References that let the entity pass, for those that are still unknown. */
function bestCaseReferences({ entity, sender, recipient }: ResolvedArrival): References {
  const reference = receivedType(entity).referenceOf(entity)
  const { author = sender } = reference !== undefined && 'parent' in reference ? reference : {}
  return {
    root: { author, local: false, public: true },
    target: { author: sender },
    conversation: { participants: [entity.author, ...(recipient === undefined ? [] : [recipient.address])] },
  }
}

function knownReferences(references: References): References {
  return Object.fromEntries(Object.entries(references).filter(([, reference]) => reference !== undefined))
}

function hostOf(address: string): string | undefined {
  return splitAddress(address)?.host
}

/** Removes photos that no browser can load, and photos that were retracted before the post arrived. */
function withoutUnusablePhotos(entity: ReceivableEntity, batch: BatchReferences): ReceivableEntity {
  if (entity.type !== 'status_message') return entity
  const photos = entity.photos.filter((photo) => isWebUrl(photo.remote_photo_path) && !isPhotoRetracted(photo, batch))
  return { ...entity, photos }
}

/** Any author can use a guid in advance. The post loses the photo or poll with such a guid, and is stored without it. */
function withoutPartsOfOtherAuthors(entity: ReceivableEntity, batch: BatchReferences): ReceivableEntity {
  if (entity.type !== 'status_message') return entity
  const { author, poll } = entity
  const photos = entity.photos.filter((photo) => !isPartOfOtherAuthor(photo, author, batch))
  const mustLosePoll = poll !== undefined && isPartOfOtherAuthor(poll, author, batch)
  if (photos.length === entity.photos.length && !mustLosePoll) return entity
  return { ...entity, photos, poll: mustLosePoll ? undefined : poll }
}
