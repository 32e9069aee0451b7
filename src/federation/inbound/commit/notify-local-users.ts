import type { Knex } from 'knex'
import { type NotificationCauses, notifyAbout } from '../../../domain/notifications/notifications.js'
import { readMentionedAddresses } from '../../../domain/posts/texts.js'
import type { PostVisibility } from '../../../persistence/inbound/insert-posts.js'
import { findSilentReshares } from '../../../persistence/notifications/silent-reshares.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { isRemoteAddress } from '../../discovery/pod-location.js'
import type { StoredRecord } from '../batch.js'
import { INBOUND_LIMITS } from '../limits.js'
import { type NotificationCause, receivingRulesOf } from '../receiving-rules.js'
import type { StoredEntities } from '../store/store-entities.js'

/**
 * Writes what the stored records change for local users: their notifications, and the places of commented posts in their activity
 * streams. One statement does both. Returns the ids of the notifications.
 */
export async function notifyLocalUsers(
  services: Services,
  transaction: Knex.Transaction,
  { records, redelivered, newlyVisible }: Pick<StoredEntities, 'records' | 'redelivered' | 'newlyVisible'>,
): Promise<readonly number[]> {
  const now = services.now()
  const causes = causesOf(
    services,
    records.filter(({ message }) => mayNotify(message, now)),
  )
  const unnotifiedPosts = await findUnnotifiedPosts(
    services,
    transaction,
    redelivered.filter(({ message }) => !isTooOldToNotify(message, now)),
  )
  const posts = [...causes.posts, ...unnotifiedPosts.posts]
  const reshares = [...causes.reshares, ...unnotifiedPosts.reshares]
  const newlyVisiblePosts = withoutNewPosts(newlyVisible, records)
  return notifyAbout(transaction, { ...causes, posts, reshares, newlyVisiblePosts, shouldMoveActivity: true }, now)
}

/** Recipients of a new post are notified as people whom the post mentions. */
function withoutNewPosts(
  visibilities: readonly PostVisibility[],
  records: readonly StoredRecord[],
): readonly PostVisibility[] {
  const newPosts = new Set(
    records.filter(({ message }) => message.entity.type === 'status_message').map(({ id }) => id),
  )
  return visibilities.filter(({ postId }) => !newPosts.has(postId))
}

/** People are notified of everything that other pods send, even late; of what this pod has fetched only if it was written recently. */
function mayNotify(message: StoredRecord['message'], now: Date): boolean {
  return message.inbound.fetchRequest === undefined || !(isTooOldToNotify(message, now) || isFetchedForArchive(message))
}

function isTooOldToNotify({ entity }: StoredRecord['message'], now: Date): boolean {
  return (
    'created_at' in entity && now.getTime() - entity.created_at.getTime() > INBOUND_LIMITS.maxNotifiedAgeDays * DAY_MS
  )
}

/** A post that was fetched because an archive refers to it. If its pod sends it later, people are notified then. */
function isFetchedForArchive({ entity, inbound }: StoredRecord['message']): boolean {
  return inbound.fetchRequest?.isForArchive === true && (entity.type === 'status_message' || entity.type === 'reshare')
}

/** Posts that an import has fetched before their pods have sent them: nobody was notified about them. */
async function findUnnotifiedPosts(
  services: Services,
  transaction: Knex.Transaction,
  redelivered: readonly StoredRecord[],
): Promise<Required<Pick<NotificationCauses, 'posts' | 'reshares'>>> {
  const mentioningPosts = redelivered.filter(({ message: { entity } }) => {
    const text = receivingRulesOf(entity).mentioningText(entity)?.text ?? ''
    return readMentionedAddresses(text).some((address) => !isRemoteAddress(services, address))
  })
  const { reshares } = causesOf(services, redelivered)
  return {
    posts: mentioningPosts.map(({ id }) => id), // a mention has only one notification
    reshares: await findSilentReshares(transaction, reshares),
  }
}

function causesOf(services: Services, records: readonly StoredRecord[]): Readonly<Record<NotificationCause, number[]>> {
  const causes: Record<NotificationCause, number[]> = { posts: [], comments: [], likes: [], reshares: [] }
  for (const { id, message } of records) {
    const { entity, isParentLocal } = message
    const isLocalAddress = (address: string | undefined) => address !== undefined && !isRemoteAddress(services, address)
    const cause = receivingRulesOf(entity).causeOf(entity, { isParentLocal, isLocalAddress })
    if (cause !== undefined) causes[cause].push(id)
  }
  return causes
}
