import { findViewersByTokenIds } from '../../domain/accounts/viewers.js'
import { findLiveEvents, groupAnnouncementsByRecipient } from '../../domain/notifications/live-events.js'
import { recordWrites } from '../../persistence/database/last-writes.js'
import {
  ANNOUNCEMENT_BATCH_SIZE,
  type Announcement,
  findAnnouncementRange,
  listAnnouncementsOfUser,
} from '../../persistence/notifications/announcements.js'
import type { Pod } from '../../pod/pod.js'
import { Semaphore } from '../../throttling/semaphore.js'
import { dialectContext } from '../api/dialect.js'
import { eventText, type Gap, positionText, resetText } from './event-text.js'
import type { LiveLimits } from './limits.js'
import type { Listener } from './listener.js'

type RecipientAnnouncements = ReadonlyMap<Listener, readonly Announcement[]>

export interface EventDelivery {
  /** Selects the announcements of each listener, and ends the streams of recipients whose token is no longer valid. */
  findRecipients(
    announcements: readonly Announcement[],
    listeners: readonly Listener[],
  ): Promise<RecipientAnnouncements>
  /** Sends the events after the position of the listener. Returns whether the client accepts more. */
  send(listener: Listener, announcements: readonly Announcement[] | undefined, upTo: number): Promise<boolean>
  /** Reads and sends one batch of missed events. Returns whether the listener has received all of them. */
  sendMissed(listener: Listener): Promise<boolean>
}

/** Reads and writes the events of listeners. Holds no state but the limit of concurrent reads. */
export function openEventDelivery(pod: Pod, limits: LiveLimits): EventDelivery {
  const readSlots = new Semaphore(limits.showingAtOnce)

  async function findRecipients(announcements: readonly Announcement[], listeners: readonly Listener[]) {
    const recipients = await groupAnnouncementsByRecipient(pod, announcements, listeners)
    await endInvalidTokens(pod, [...recipients.keys()])
    await requireFreshReads(pod, [...recipients.keys()])
    return recipients
  }

  async function send(listener: Listener, announcements: readonly Announcement[] = [], upTo: number): Promise<boolean> {
    const { position = 0 } = listener
    const unsent = announcements.filter(({ id }) => id > position)
    for (let from = 0; from < unsent.length; from += limits.writtenAtOnce) {
      const batch = unsent.slice(from, from + limits.writtenAtOnce)
      const events = await readSlots.run(() => findLiveEvents(pod, listener.viewer, batch))
      const context = dialectContext(pod.config, listener.viewer)
      const canAcceptMore = listener.write(events.map((event) => eventText(event, context)).join(''))
      listener.position = batch.at(-1)?.id ?? upTo
      if (!canAcceptMore) return false
    }
    listener.position = Math.max(position, upTo)
    return true
  }

  async function sendMissed(listener: Listener): Promise<boolean> {
    const { from, newest } = await findAnnouncementRange(pod.db)
    if (listener.position === undefined) return await startAt(listener, newest, positionText(newest))
    const gap = gapBefore(listener, listener.position, { from, newest })
    if (gap !== undefined) return await startAt(listener, newest, resetText(newest, gap))

    const { userId } = listener.viewer
    const missed = await listAnnouncementsOfUser(pod.db, { userId, after: listener.position, upTo: newest })
    const isComplete = missed.length < ANNOUNCEMENT_BATCH_SIZE
    const recipients = await findRecipients(missed, [listener])
    const upTo = isComplete ? newest : (missed.at(-1)?.id ?? newest)
    const canAcceptMore = await send(listener, recipients.get(listener), upTo)
    const { position = 0 } = listener
    listener.missed += missed.filter(({ id }) => id <= position).length
    return isComplete && canAcceptMore
  }

  /** Undefined: every event after this position can still be sent. */
  function gapBefore(
    { missed }: Listener,
    position: number,
    { from, newest }: { readonly from: number; readonly newest: number },
  ): Gap | undefined {
    if (position < 0 || position > newest) return 'unknown'
    if (position < from) return 'too_old'
    return missed > limits.missed ? 'too_many' : undefined
  }

  async function startAt(listener: Listener, position: number, text: string): Promise<true> {
    await requireFreshReads(pod, [listener])
    listener.write(text)
    listener.position = position
    listener.missed = 0
    return true
  }

  return { findRecipients, send, sendMissed }
}

/** Ends the streams of listeners whose token was revoked or has expired, and updates the scopes of the others. */
export async function endInvalidTokens(pod: Pod, listeners: readonly Listener[]): Promise<void> {
  if (listeners.length === 0) return
  const ids = listeners.flatMap(({ viewer }) => viewer.tokenId ?? [])
  const viewers = await findViewersByTokenIds(pod, ids)
  for (const listener of listeners) {
    const viewer = viewers.get(listener.viewer.tokenId ?? 0)
    if (viewer === undefined) listener.end()
    else listener.viewer = viewer
  }
}

/** Lists that a client reads after an event must include it, so a replica that lags behind the event is not used for them. */
async function requireFreshReads(pod: Pod, listeners: readonly Listener[]): Promise<void> {
  const users = new Set(listeners.map(({ viewer }) => viewer.userId))
  if (pod.replica !== undefined) await recordWrites(pod.db, [...users])
}
