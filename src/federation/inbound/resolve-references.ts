import { type EntityKey, UNREADABLE } from '../../jobs/waiting/entity-key.js'
import { WAITING_LIMITS } from '../../jobs/waiting/limits.js'
import { splitAddress } from '../../protocol/address.js'
import { type ReceivableEntity, storingRank } from '../../protocol/entities/registry.js'
import type { References } from '../../protocol/envelopes/sender-rules.js'
import type { Services } from '../../services/services.js'
import { isAuthorised } from './authorise.js'
import type { ResolvedMessage, StepResult, VerifiedMessage, WaitingMessage } from './batch.js'
import {
  addEntityOfBatch,
  type BatchReferences,
  findBatchReferences,
  findReferences,
  hasUnreadableParent,
  isPartOfOtherAuthor,
} from './batch-references.js'
import { keyOfTarget, receivingRulesOf } from './receiving-rules.js'
import { isWebUrl } from './store/photo-values.js'
import { isParentDeleted, isPhotoRetracted, wasRetractedBefore } from './tombstones.js'

/**
 * Finds the entities that a batch refers to, with one statement for each kind of reference. A message with an unknown reference
 * has to wait for it. They are resolved in the order of storing: an entity that will be authorised is a reference of those after it.
 */
export async function resolveReferences(
  services: Pick<Services, 'config' | 'db'>,
  messages: readonly VerifiedMessage<ReceivableEntity>[],
): Promise<StepResult<ResolvedMessage>> {
  const batch = await findBatchReferences(
    services,
    messages.map(({ entity }) => entity),
  )
  const ready: ResolvedMessage[] = []
  const waiting: WaitingMessage[] = []
  for (const message of inStoringOrder(messages)) {
    const resolvedMessage = resolve(services, message, batch)
    const missing = missingReferenceOf(services, resolvedMessage)
    if (missing !== undefined) {
      waiting.push({
        inbound: message.inbound,
        message,
        sender: message.sender,
        isVerified: true,
        ...missing,
      })
    } else {
      ready.push(resolvedMessage)
      if (canBeReferredTo(resolvedMessage, batch) && isAuthorised(resolvedMessage)) {
        addEntityOfBatch(resolvedMessage.entity, resolvedMessage.references, batch)
      }
    }
  }
  return { ready, waiting, rejected: [], ignored: [] }
}

/** Lists every field: spreading the message copies it name by name, which takes longer than the rest of this function. */
function resolve(
  { config }: Pick<Services, 'config'>,
  message: VerifiedMessage<ReceivableEntity>,
  batch: BatchReferences,
): ResolvedMessage {
  const { inbound, sender, signer, author, signature, firstSigned, recipient, movedFrom } = message
  const receivedEntity = withoutUnusablePhotos(message.entity, batch)
  const entity = withoutPartsOfOtherAuthors(receivedEntity, batch)
  const references = findReferences(entity, batch)
  return {
    inbound,
    sender,
    signer,
    author,
    entity,
    signature,
    firstSigned,
    recipient,
    movedFrom,
    isParentLocal: references.threadPost?.isLocal ?? false,
    references,
    isDeleted: wasRetractedBefore(message, references, batch) || isParentDeleted(message, references, batch),
    hasLostParts: entity !== receivedEntity,
    isAuthorLocal:
      movedFrom === undefined &&
      receivingRulesOf(entity).isAuthorFieldAuthoritative &&
      entity.author.endsWith(`@${config.host}`),
    hasUnreadableParent: hasUnreadableParent(entity, batch),
  }
}

function inStoringOrder(messages: readonly VerifiedMessage<ReceivableEntity>[]): VerifiedMessage<ReceivableEntity>[] {
  return messages.toSorted((one, other) => storingRank(one.entity) - storingRank(other.entity))
}

/** Only retractions refer to an entity that has no children. */
function canBeReferredTo({ entity }: ResolvedMessage, { hasRetractions }: BatchReferences): boolean {
  return hasRetractions || receivingRulesOf(entity).parentsIn !== undefined
}

/** The unknown entity, and the pods that may have it. */
type MissingReference = Omit<WaitingMessage, 'inbound' | 'sender' | 'isVerified'>

/** The reference that a message has to wait for. A message that would be rejected in any case causes no request to another pod. */
function missingReferenceOf(
  services: Pick<Services, 'config'>,
  resolved: ResolvedMessage,
): MissingReference | undefined {
  const missing = unknownReferenceOf(services, resolved)
  return missing !== undefined && couldBeAuthorised(resolved) ? missing : undefined
}

/** Whether `authorise` would pass the entity if its unknown references were the best possible ones. */
function couldBeAuthorised(resolved: ResolvedMessage): boolean {
  const references = { ...bestCaseReferences(resolved), ...knownReferences(resolved.references) }
  return isAuthorised({ ...resolved, references })
}

function unknownReferenceOf(
  { config }: Pick<Services, 'config'>,
  { entity, sender, references, hasUnreadableParent }: ResolvedMessage,
): MissingReference | undefined {
  const reference = receivingRulesOf(entity).referenceOf(entity)
  if (reference === undefined) return undefined
  if ('target' in reference) {
    const waitsFor = keyOfTarget(reference.target)
    if (references.target !== undefined || waitsFor === undefined) return undefined
    return { waitsFor, fault: 'TargetNotFound', maxWaitSeconds: WAITING_LIMITS.retractionWaitSeconds }
  }
  if ('conversation' in reference) {
    if (references.conversation !== undefined) return undefined
    return { waitsFor: `conversation:${reference.conversation}`, fault: 'ConversationNotFound' }
  }
  if (references.threadPost !== undefined) return undefined
  const { parent, author: fetchFrom = entity.author } = reference
  if (hostOf(fetchFrom) === config.host) return undefined // an unknown local entity has been deleted
  const fallbackFetchFrom = hostOf(sender) === hostOf(fetchFrom) ? undefined : sender
  const waitsFor: EntityKey = `${hasUnreadableParent ? UNREADABLE : ''}${parent.kind}:${parent.guid}`
  return { waitsFor, fault: 'NotFetchable', fetchFrom, fallbackFetchFrom }
}

/** References that let the entity pass, for those that are still unknown. */
function bestCaseReferences({ entity, sender, recipient }: ResolvedMessage): References {
  const reference = receivingRulesOf(entity).referenceOf(entity)
  const { author = sender } = reference !== undefined && 'parent' in reference ? reference : {}
  return {
    threadPost: { author, isLocal: false, isPublic: true },
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
