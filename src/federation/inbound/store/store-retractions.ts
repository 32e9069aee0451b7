import type { Knex } from 'knex'
import { cancelCreations, enqueueMessage } from '../../../domain/outbound/outgoing-messages.js'
import { destroyAndCancelCreations } from '../../../domain/posts/retract.js'
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
} from '../../../persistence/outbound/cancel-deliveries.js'
import { DELIVERY_PRIORITY } from '../../../persistence/outbound/delivery-priority.js'
import type { RelayableKind } from '../../../persistence/outbound/lock-dispatched.js'
import {
  type Destroyed,
  type Destructible,
  destroy,
  emptyWithoutPhotos,
} from '../../../persistence/posts/destroy-entities.js'
import type { Pod } from '../../../pod/pod.js'
import type { RetractionEntity } from '../../../protocol/entities/retraction.js'
import { faultOfArrival } from '../../../protocol/envelopes/sender-rules.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoreResult } from '../batch.js'
import { kindOfTarget } from '../references.js'

interface Found {
  readonly arrival: Arrival<RetractionEntity>
  readonly target: RetractionTarget
}

/** Takes back what is here and passes on what was under posts of our people; what is not here may be on its way and stays away. */
export async function storeRetractions(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<RetractionEntity>[],
  _now: Date,
  pod: Pick<Pod, 'jobs'>,
): Promise<StoreResult<RetractionEntity>> {
  await leaveTombstones(transaction, arrivals)
  const { found, rejected, ignored } = await findTargets(transaction, arrivals)
  await endSharing(transaction, found)

  for (const kind of new Set(Object.values(kindOfTarget))) {
    const ofKind = found.filter(({ arrival }) => kindOf(arrival) === kind)
    if (ofKind.length > 0) await takeAway(pod, transaction, kind, ofKind)
  }
  const records = found.map(({ arrival, target }) => {
    const byAuthor = arrival.sender === target.author
    return { id: byAuthor ? target.authorId : (target.root?.authorId ?? target.authorId), arrival }
  })
  return { records, rejected, ignored }
}

/** Remembers who has taken back what, so that it stays away when it comes later: also for retractions that wait for their target. */
export async function leaveTombstones(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<RetractionEntity>[],
): Promise<void> {
  const tombstones = arrivals
    .filter(({ entity }) => entity.target_type !== 'Person')
    .map(({ entity, sender }) => ({ type: entity.target_type, guid: entity.target_guid, by: sender }))
  await Tombstone.insertMany(transaction, tombstones)
}

/** Looked for once more: since it was found the target may have gone, or come with this very batch. */
async function findTargets(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<RetractionEntity>[],
): Promise<{
  readonly found: readonly Found[]
  readonly rejected: readonly RejectedMessage[]
  readonly ignored: readonly IgnoredMessage[]
}> {
  const targets = await findRetractionTargets(
    transaction,
    arrivals.map(({ entity }) => ({ type: entity.target_type, guid: entity.target_guid })),
  )
  const found: Found[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const arrival of arrivals) {
    const { message, entity, recipient } = arrival
    const name = `${entity.target_type} ${entity.target_guid}`
    const target = targets.get(name)
    if (target === undefined) {
      ignored.push({ message, arrival, reason: `the ${name} is not here` })
      continue
    }
    const fault = faultOfArrival({ ...arrival, recipient: recipient?.address }, { target })
    if (fault === undefined) found.push({ arrival, target })
    else rejected.push({ message, arrival, fault, reason: `${arrival.sender} must not take back the ${name}` })
  }
  return { found, rejected, ignored }
}

/** The old way to say it. Whoever cannot be shared with any more is the one that it was encrypted for. */
async function endSharing(transaction: Knex.Transaction, found: readonly Found[]): Promise<void> {
  const pairs = found.flatMap(({ arrival: { entity, recipient }, target }) =>
    entity.target_type === 'Person' && recipient !== undefined
      ? [{ userId: recipient.userId, personId: target.authorId }]
      : [],
  )
  await stopSharing(transaction, pairs)
}

async function takeAway(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  kind: Destructible,
  found: readonly Found[],
): Promise<void> {
  const ids = [...new Set(found.map(({ target }) => target.id))]
  const mentions = kind === 'comment' ? await Mention.query(transaction).whereRaw('comment_id = any(?)', [ids]) : []
  const emptied = kind === 'photo' ? await emptyWithoutPhotos(transaction, ids) : []
  const isPassedOn = found.some(({ target }) => target.root?.local)
  const recent = isPassedOn && isRelayable(kind) ? await findRecentRelayables(transaction, kind, ids) : []
  const gone = await destroy(transaction, kind, ids)

  const passedOn: string[] = []
  for (const { arrival, target } of firstOfEach(kind, found, gone)) {
    const mentioned = mentions.filter(({ commentId }) => commentId === target.id).map(({ personId }) => personId)
    if (!target.root?.local) continue
    await passOn(pod, transaction, kind, arrival.entity, target.root, target, mentioned)
    passedOn.push(arrival.entity.target_guid)
  }
  await deleteRetractionsOfUndispatched(
    transaction,
    kind,
    recent.filter((guid) => passedOn.includes(guid)),
  )
  await deleteRetractionsOfUnsentCreations(transaction, kind, passedOn)
  await cancelCreations(transaction, gone)
  const emptiedIds = emptied.map(({ id }) => id)
  await destroyAndCancelCreations(transaction, 'post', emptiedIds)
}

function isRelayable(kind: Destructible): kind is RelayableKind {
  return kind === 'comment' || kind === 'like' || kind === 'poll_participation'
}

/** What is really gone, once: of two who take the same thing back the second changes nothing. In one order for all batches. */
function firstOfEach(kind: Destructible, found: readonly Found[], gone: readonly Destroyed[]): readonly Found[] {
  const ids = new Set(gone.filter(({ record }) => record === kind).map(({ id }) => id))
  const first = new Map(found.toReversed().map((one) => [one.target.id, one]))
  return [...first.values()]
    .filter(({ target }) => ids.has(target.id))
    .sort((one, other) => (one.arrival.entity.target_guid < other.arrival.entity.target_guid ? -1 : 1))
}

/**
 * Who got it from the author of the post hears from them that it is gone; the pod of its author knows. A pod to which nothing of it
 * was sent receives no retraction either.
 */
async function passOn(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  kind: Destructible,
  { target_guid: guid, target_type }: RetractionEntity,
  root: NonNullable<RetractionTarget['root']>,
  { author, authorId }: RetractionTarget,
  mentioned: readonly number[],
): Promise<void> {
  const entity = { type: 'retraction', author, target_guid: guid, target_type } as const
  await enqueueMessage(
    pod,
    transaction,
    {
      record: kind,
      guid,
      verb: 'retract',
      senderId: root.authorId,
      public: root.public,
      entity,
      priority: DELIVERY_PRIORITY.relay,
    },
    { of: 'post', postId: root.postId, exceptPodOfPersonId: authorId, and: root.public ? mentioned : [] },
  )
}

function kindOf({ entity }: Arrival<RetractionEntity>): Destructible | undefined {
  return entity.target_type === 'Person' ? undefined : kindOfTarget[entity.target_type]
}
