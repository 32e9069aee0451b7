import { Semaphore } from '../../concurrency/semaphore.js'
import { findViewersByTokenIds } from '../../domain/accounts/viewers.js'
import { findLiveEvents, groupLiveEventsByRecipient } from '../../domain/notifications/live-events.js'
import { inChunks } from '../../jobs/chunks.js'
import { recordWrites } from '../../persistence/database/last-writes.js'
import {
  findLiveEventRange,
  LIVE_EVENT_BATCH_SIZE,
  type LiveEventSource,
  listLiveEventsOfUser,
} from '../../persistence/notifications/live-event-sources.js'
import type { Services } from '../../services/services.js'
import { dialectContext } from '../api/dialect.js'
import { eventText, type Gap, positionText, resetText } from './event-text.js'
import type { LiveLimits } from './limits.js'
import type { Listener } from './listener.js'

type LiveEventsOfRecipients = ReadonlyMap<Listener, readonly LiveEventSource[]>

export interface EventDelivery {
  /** Selects the live events of each listener, and ends the streams of recipients whose token is no longer valid. */
  findRecipients(sources: readonly LiveEventSource[], listeners: readonly Listener[]): Promise<LiveEventsOfRecipients>
  /** Sends the events after the position of the listener. Returns whether the client accepts more. */
  send(listener: Listener, sources: readonly LiveEventSource[] | undefined, upTo: number): Promise<boolean>
  /** Reads and sends one batch of missed events. Returns whether the listener has received all of them. */
  sendMissed(listener: Listener): Promise<boolean>
}

/** Reads and writes the events of listeners. Holds no state but the limit of concurrent reads. */
export function openEventDelivery(services: Services, limits: LiveLimits): EventDelivery {
  const readSlots = new Semaphore(limits.maxConcurrentReads)

  async function findRecipients(sources: readonly LiveEventSource[], listeners: readonly Listener[]) {
    const recipients = await groupLiveEventsByRecipient(services, sources, listeners)
    await endInvalidTokens(services, [...recipients.keys()])
    await sendNextReadsToPrimary(services, [...recipients.keys()])
    return recipients
  }

  async function send(listener: Listener, sources: readonly LiveEventSource[] = [], upTo: number): Promise<boolean> {
    const { position = 0 } = listener
    const unsent = sources.filter(({ id }) => id > position)
    for (const batch of inChunks(unsent, limits.eventsPerBatch)) {
      const events = await readSlots.run(() => findLiveEvents(services, listener.viewer, batch))
      const context = dialectContext(services.config, listener.viewer)
      const canAcceptMore = listener.write(events.map((event) => eventText(event, context)).join(''))
      listener.position = batch.at(-1)?.id ?? upTo
      if (!canAcceptMore) return false
    }
    listener.position = Math.max(position, upTo)
    return true
  }

  async function sendMissed(listener: Listener): Promise<boolean> {
    const { from, newest } = await findLiveEventRange(services.db)
    if (listener.position === undefined) return await startAt(listener, newest, positionText(newest))
    const gap = gapBefore(listener, listener.position, { from, newest })
    if (gap !== undefined) return await startAt(listener, newest, resetText(newest, gap))

    const { userId } = listener.viewer
    const missedEvents = await listLiveEventsOfUser(services.db, { userId, after: listener.position, upTo: newest })
    const isComplete = missedEvents.length < LIVE_EVENT_BATCH_SIZE
    const recipients = await findRecipients(missedEvents, [listener])
    const upTo = isComplete ? newest : (missedEvents.at(-1)?.id ?? newest)
    const canAcceptMore = await send(listener, recipients.get(listener), upTo)
    const { position = 0 } = listener
    listener.missed += missedEvents.filter(({ id }) => id <= position).length
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
    return missed > limits.maxMissedEvents ? 'too_many' : undefined
  }

  async function startAt(listener: Listener, position: number, text: string): Promise<true> {
    await sendNextReadsToPrimary(services, [listener])
    listener.write(text)
    listener.position = position
    listener.missed = 0
    return true
  }

  return { findRecipients, send, sendMissed }
}

/** Ends the streams of listeners whose token was revoked or has expired, and updates the scopes of the others. */
export async function endInvalidTokens(services: Services, listeners: readonly Listener[]): Promise<void> {
  if (listeners.length === 0) return
  const ids = listeners.flatMap(({ viewer }) => viewer.tokenId ?? [])
  const viewers = await findViewersByTokenIds(services, ids)
  for (const listener of listeners) {
    const viewer = viewers.get(listener.viewer.tokenId ?? 0)
    if (viewer === undefined) listener.end()
    else listener.viewer = viewer
  }
}

/** Lists that a client reads after an event must include it, so a replica that has not replayed the event is not used for them. */
async function sendNextReadsToPrimary(services: Services, listeners: readonly Listener[]): Promise<void> {
  const users = new Set(listeners.map(({ viewer }) => viewer.userId))
  if (services.replica !== undefined) await recordWrites(services.db, [...users])
}
