import type { Knex } from 'knex'
import { cancelCreations, storeMessage } from '../../../domain/outbound/outgoing-messages.js'
import { destroyWithCreations } from '../../../domain/posts/retract.js'
import { stopSharing } from '../../../persistence/contacts/contact-changes.js'
import {
  findRecentRelayables,
  findRetractionTargets,
  type RetractionTarget,
} from '../../../persistence/inbound/retraction-targets.js'
import { Mention } from '../../../persistence/models/mention.js'
import { Tombstone } from '../../../persistence/models/tombstone.js'
import {
  deleteRetractionsOfUndispatched,
  deleteRetractionsOfUnsentCreations,
} from '../../../persistence/outbound/delete-messages.js'
import { DELIVERY_PRIORITY } from '../../../persistence/outbound/delivery-priority.js'
import {
  type DestroyedEntity,
  destroyEntities,
  findPostsEmptyWithoutPhotos,
} from '../../../persistence/posts/destroy-entities.js'
import { isRelayableKind, RETRACTED_RECORDS, type RetractableKind } from '../../../protocol/entities/registry.js'
import type { RetractionEntity } from '../../../protocol/entities/retraction.js'
import { findSenderFault } from '../../../protocol/envelopes/sender-rules.js'
import type { Services } from '../../../services/services.js'
import type { IgnoredMessage, RejectedMessage, StorableMessage, StoreResult, VerifiedMessage } from '../batch.js'

interface FoundTarget {
  readonly message: StorableMessage<RetractionEntity>
  readonly target: RetractionTarget
}

/**
 * Deletes the targets, and relays retractions of interactions with local posts. Tombstones keep away targets that arrive later.
 */
export async function storeRetractions(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<RetractionEntity>[],
): Promise<StoreResult<RetractionEntity>> {
  await insertTombstones(transaction, messages)
  const { found, rejected, ignored } = await findTargets(transaction, messages)
  await endSharing(transaction, found)

  for (const kind of new Set(Object.values(RETRACTED_RECORDS))) {
    const targetsOfKind = found.filter(({ message }) => kindOf(message) === kind)
    if (targetsOfKind.length > 0) await deleteTargets(services, transaction, kind, targetsOfKind)
  }
  const records = found.map(({ message, target }) => {
    const isByAuthor = message.sender === target.author
    return { id: isByAuthor ? target.authorId : (target.threadPost?.authorId ?? target.authorId), message }
  })
  return { records, rejected, ignored }
}

/** Stores who has retracted which entity, so that a target that arrives later is ignored. */
export async function insertTombstones(
  transaction: Knex.Transaction,
  messages: readonly VerifiedMessage<RetractionEntity>[],
): Promise<void> {
  const tombstones = messages
    .filter(({ entity }) => entity.target_type !== 'Person')
    .map(({ entity, sender }) => ({ type: entity.target_type, guid: entity.target_guid, by: sender }))
  await Tombstone.insertMany(transaction, tombstones)
}

/** Searches the targets again, under their locks: since `resolveReferences` a target may have been deleted, or stored by this batch. */
async function findTargets(
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<RetractionEntity>[],
): Promise<{
  readonly found: readonly FoundTarget[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}> {
  const targets = await findRetractionTargets(
    transaction,
    messages.map(({ entity }) => ({ type: entity.target_type, guid: entity.target_guid })),
  )
  const foundTargets: FoundTarget[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const message of messages) {
    const { inbound, entity, recipient } = message
    const targetName = `${entity.target_type} ${entity.target_guid}`
    const target = targets.get(targetName)
    if (target === undefined) {
      ignored.push({ inbound, message, reason: `the ${targetName} is not stored` })
      continue
    }
    const fault = findSenderFault({ ...message, recipient: recipient?.address }, { target })
    if (fault === undefined) foundTargets.push({ message, target })
    else
      rejected.push({
        inbound,
        message,
        fault,
        reason: `${message.sender} must not retract the ${targetName}`,
      })
  }
  return { found: foundTargets, rejected, ignored }
}

/** A retraction of a person is the old form of a contact entity: the sender ends sharing with the recipient. */
async function endSharing(transaction: Knex.Transaction, targets: readonly FoundTarget[]): Promise<void> {
  const pairs = targets.flatMap(({ message: { entity, recipient }, target }) =>
    entity.target_type === 'Person' && recipient !== undefined
      ? [{ userId: recipient.userId, personId: target.authorId }]
      : [],
  )
  await stopSharing(transaction, pairs)
}

async function deleteTargets(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  kind: RetractableKind,
  targets: readonly FoundTarget[],
): Promise<void> {
  const ids = [...new Set(targets.map(({ target }) => target.id))]
  const mentions = kind === 'comment' ? await Mention.query(transaction).whereRaw('comment_id = any(?)', [ids]) : []
  const emptiedPosts = kind === 'photo' ? await findPostsEmptyWithoutPhotos(transaction, ids) : []
  const hasLocalThread = targets.some(({ target }) => target.threadPost?.local)
  const recentGuids = hasLocalThread && isRelayableKind(kind) ? await findRecentRelayables(transaction, kind, ids) : []
  const destroyedEntities = await destroyEntities(transaction, kind, ids)

  const relayedGuids: string[] = []
  for (const { message, target } of firstOfEachTarget(kind, targets, destroyedEntities)) {
    const mentionedIds = mentions.filter(({ commentId }) => commentId === target.id).map(({ personId }) => personId)
    const { author, authorId, threadPost } = target
    if (!threadPost?.local) continue
    await relayRetraction(services, transaction, {
      kind,
      entity: message.entity,
      threadPost,
      author,
      authorId,
      mentionedIds,
    })
    relayedGuids.push(message.entity.target_guid)
  }
  await deleteRetractionsOfUndispatched(
    transaction,
    kind,
    recentGuids.filter((guid) => relayedGuids.includes(guid)),
  )
  await deleteRetractionsOfUnsentCreations(transaction, kind, relayedGuids)
  await cancelCreations(transaction, destroyedEntities)
  const emptiedIds = emptiedPosts.map(({ id }) => id)
  await destroyWithCreations(transaction, 'post', emptiedIds)
}

/** The first retraction of each destroyed target, in one order for all batches, so that transactions cannot deadlock. */
function firstOfEachTarget(
  kind: RetractableKind,
  targets: readonly FoundTarget[],
  destroyed: readonly DestroyedEntity[],
): readonly FoundTarget[] {
  const ids = new Set(destroyed.filter(({ record }) => record === kind).map(({ id }) => id))
  const first = new Map(targets.toReversed().map((one) => [one.target.id, one]))
  return [...first.values()]
    .filter(({ target }) => ids.has(target.id))
    .sort((one, other) => (one.message.entity.target_guid < other.message.entity.target_guid ? -1 : 1))
}

/** A retraction of an interaction with a local post. */
interface RelayedRetraction {
  readonly kind: RetractableKind
  readonly entity: RetractionEntity
  readonly threadPost: NonNullable<RetractionTarget['threadPost']>
  /** The address and the id of the author of the interaction. */
  readonly author: RetractionTarget['author']
  readonly authorId: RetractionTarget['authorId']
  /** The people whom a retracted comment mentions. */
  readonly mentionedIds: readonly number[]
}

/**
 * Sends the retraction to the pods that received the interaction from the local post author. The pod of its own author has sent
 * the retraction, so it is left out.
 */
async function relayRetraction(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { kind, entity: { target_guid: guid, target_type }, threadPost, author, authorId, mentionedIds }: RelayedRetraction,
): Promise<void> {
  const entity = { type: 'retraction', author, target_guid: guid, target_type } as const
  await storeMessage(
    services,
    transaction,
    {
      record: kind,
      guid,
      verb: 'retract',
      senderId: threadPost.authorId,
      public: threadPost.public,
      entity,
      priority: DELIVERY_PRIORITY.relay,
    },
    {
      kind: 'post',
      postId: threadPost.postId,
      exceptPodOfPersonId: authorId,
      alsoPersonIds: threadPost.public ? mentionedIds : [],
    },
  )
}

function kindOf({ entity }: StorableMessage<RetractionEntity>): RetractableKind | undefined {
  return entity.target_type === 'Person' ? undefined : RETRACTED_RECORDS[entity.target_type]
}
