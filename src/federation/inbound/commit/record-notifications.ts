import type { Knex } from 'knex'
import { notifyAbout } from '../../../domain/notifications/notifications.js'
import type { Services } from '../../../services/services.js'
import { isRemoteAddress } from '../../discovery/pod-location.js'
import type { StoredRecord } from '../batch.js'
import { type NotificationCause, receivedType } from '../received-entities.js'

/**
 * Notifies local people about the stored records, and moves commented posts forward in the activity streams of those involved. Returns
 * the ids of the notifications.
 */
export async function recordNotificationsAndActivity(
  services: Services,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly number[]> {
  const causes: Record<NotificationCause, number[]> = { posts: [], comments: [], likes: [], reshares: [] }
  for (const { id, message } of records) {
    const { entity, isParentLocal } = message
    const isLocalAddress = (address: string | undefined) => address !== undefined && !isRemoteAddress(services, address)
    const cause = receivedType(entity).causeOf(entity, { isParentLocal, isLocalAddress })
    if (cause !== undefined) causes[cause].push(id)
  }
  return notifyAbout(transaction, { ...causes, shouldMoveActivity: true }, services.now())
}
