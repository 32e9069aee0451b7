import type { Knex } from 'knex'
import { notifyAbout } from '../../domain/notifications/notifications.js'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import type { Pod } from '../../pod/pod.js'
import { isRemoteAddress } from '../discovery/pod-location.js'
import type { StoredRecord } from './batch.js'

/**
 * Notifies local people about the stored records, and moves commented posts forward in the activity streams of those involved. Returns
 * the ids of the notifications.
 */
export async function recordNotificationsAndActivity(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly number[]> {
  const idsOf = (isCause: (arrival: StoredRecord['arrival']) => boolean) =>
    records.filter(({ arrival }) => isCause(arrival)).map(({ id }) => id)
  const causes = {
    // A post notifies only the people it mentions.
    posts: idsOf(({ entity }) => entity.type === 'status_message' && readMentionedAddresses(entity.text).length > 0),
    comments: idsOf(({ entity }) => entity.type === 'comment'),
    // A like notifies only the author of its parent. The author of a liked comment is not known at this point.
    likes: idsOf(
      ({ entity, parentIsLocal = false }) =>
        entity.type === 'like' && entity.positive && (parentIsLocal || entity.parent_type === 'Comment'),
    ),
    reshares: idsOf(({ entity }) => entity.type === 'reshare' && isLocalAddress(pod, entity.root_author)),
  }
  return notifyAbout(transaction, { ...causes, moveActivity: true }, pod.now())
}

function isLocalAddress(pod: Pod, address: string | undefined): boolean {
  return address !== undefined && !isRemoteAddress(pod, address)
}
