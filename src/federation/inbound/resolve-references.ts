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
import { listParents, retractedKey } from './entity-references.js'
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
  const { message, sender, signer, author, signature, firstSigned, recipient } = arrival
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
    parentIsLocal: references.root?.local ?? false,
    references,
    isDeleted: isRetracted(arrival, references, batch) || hasDeletedParent(arrival, references, batch),
    hasLostParts: entity !== whole,
    authorIsLocal: !typesWithOtherAuthor.has(entity.type) && entity.author.endsWith(`@${config.host}`),
    hasUnreadableParent: hasUnreadableParent(entity, batch),
  }
}

/** In these types the author field may name a local person, although a remote person has sent the entity. */
const typesWithOtherAuthor: ReadonlySet<ReceivableEntity['type']> = new Set(['retraction', 'account_migration'])

/** Types that other entities may belong to, in the order of storing. */
const parentTypes: readonly ReceivableEntity['type'][] = ['status_message', 'reshare', 'comment', 'conversation']

/** Parents before their children, as they are stored; retractions last. */
function inStoringOrder(arrivals: readonly Arrival<ReceivableEntity>[]): Arrival<ReceivableEntity>[] {
  const rank = ({ entity: { type } }: Arrival<ReceivableEntity>) =>
    parentTypes.includes(type) ? parentTypes.indexOf(type) - parentTypes.length : Number(type === 'retraction')
  return arrivals.toSorted((one, other) => rank(one) - rank(other))
}

/** Only retractions refer to an entity that has no children. */
function canBeReferredTo({ entity: { type } }: ResolvedArrival, { hasRetractions }: BatchReferences): boolean {
  return hasRetractions || parentTypes.includes(type)
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
  if (entity.type === 'retraction') {
    const waitsFor = retractedKey(entity)
    if (references.target !== undefined || waitsFor === undefined) return undefined
    return { waitsFor, fault: 'TargetNotFound', maxWaitSeconds: RETRACTION_WAIT_SECONDS }
  }
  if (entity.type === 'message') {
    if (references.conversation !== undefined) return undefined
    return { waitsFor: `conversation:${entity.conversation_guid}`, fault: 'ConversationNotFound' }
  }
  const [parent] = listParents(entity)
  if (parent === undefined || references.root !== undefined) return undefined
  const fetchFrom = (entity.type === 'reshare' ? entity.root_author : undefined) ?? entity.author
  if (hostOf(fetchFrom) === config.host) return undefined // an unknown local entity has been deleted
  const fallbackFetchFrom = hostOf(sender) === hostOf(fetchFrom) ? undefined : sender
  const waitsFor: EntityKey = `${hasUnreadableParent ? UNREADABLE : ''}${parent.kind}:${parent.guid}`
  return { waitsFor, fault: 'NotFetchable', fetchFrom, fallbackFetchFrom }
}

/** Longer than a batch takes: the target may be in another batch that has not committed yet. */
const RETRACTION_WAIT_SECONDS = 60 * 60

/** References that let the entity pass, for those that are still unknown. */
function bestCaseReferences({ entity, sender, recipient }: ResolvedArrival): References {
  const author = (entity.type === 'reshare' ? entity.root_author : undefined) ?? sender
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
  const losesPoll = poll !== undefined && isPartOfOtherAuthor(poll, author, batch)
  if (photos.length === entity.photos.length && !losesPoll) return entity
  return { ...entity, photos, poll: losesPoll ? undefined : poll }
}
