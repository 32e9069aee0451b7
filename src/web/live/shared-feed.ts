import { setTimeout as pause } from 'node:timers/promises'
import { Semaphore } from '../../concurrency/semaphore.js'
import { listLiveEventsAfter } from '../../persistence/notifications/live-event-sources.js'
import type { Services } from '../../services/services.js'
import type { EventDelivery } from './deliver-events.js'
import type { LiveLimits } from './limits.js'
import type { Listener } from './listener.js'

/** Reads each source of live events once for all up-to-date listeners of this process. */
export interface SharedFeed {
  /** Sends the events that a new listener missed, then includes it in the shared reads. */
  add(listener: Listener): void
  remove(listener: Listener): void
  /** Reads and sends new live events. A call during a read makes it read once more. */
  readNew(): Promise<void>
}

/**
 * Owns the set of up-to-date listeners and the position of their shared reads. A listener that connects, or accepts no more,
 * reads from the database alone until it has caught up, so that no events are kept in memory.
 */
export function openSharedFeed(
  services: Services,
  delivery: EventDelivery,
  limits: LiveLimits,
  report: (error: unknown) => void,
): SharedFeed {
  /** Listeners that have received every event up to `cursor`. */
  const upToDate = new Set<Listener>()
  const catchUpSlots = new Semaphore(limits.maxConcurrentCatchUps)
  let cursor = 0
  let isReading = false
  let mustReadAgain = false

  async function readNew(): Promise<void> {
    mustReadAgain = true
    if (isReading) return
    isReading = true
    try {
      while (mustReadAgain) {
        mustReadAgain = false
        while (upToDate.size > 0 && (await sendNextBatch()));
      }
    } catch (error) {
      report(error) // nothing was sent; the next signal reads the same sources
    } finally {
      isReading = false
    }
  }

  /** Sends the next batch to all up-to-date listeners. Returns false if there are no new live events. */
  async function sendNextBatch(): Promise<boolean> {
    const after = cursor
    const sources = await listLiveEventsAfter(services.db, after)
    const upTo = sources.at(-1)?.id
    if (upTo === undefined) return false
    // All listeners left during the read, and a new one set the cursor back.
    if (cursor !== after) return true
    const listeners = new Set(upToDate)
    const recipients = await delivery.findRecipients(sources, [...listeners])

    cursor = upTo
    // Listeners that joined during the reads above are not in this batch.
    for (const listener of upToDate) if (!listeners.has(listener)) fallBehind(listener)
    const sends = [...listeners].map(async (listener) => {
      try {
        if (!(await delivery.send(listener, recipients.get(listener), upTo))) fallBehind(listener)
      } catch (error) {
        report(error)
        fallBehind(listener)
      }
    })
    await Promise.all(sends)
    return true
  }

  function fallBehind(listener: Listener): void {
    upToDate.delete(listener)
    void catchUp(listener)
  }

  async function catchUp(listener: Listener): Promise<void> {
    while (!listener.isClosed) {
      try {
        await listener.drained()
        const hasAll = await catchUpSlots.run(async () => listener.isClosed || delivery.sendMissed(listener))
        if (hasAll && includeInSharedReads(listener)) return
      } catch (error) {
        report(error)
        await pause(limits.againAfterMs)
      }
    }
  }

  /** Returns false if the up-to-date listeners have received events that this one has not. */
  function includeInSharedReads(listener: Listener): boolean {
    const { position = 0 } = listener
    if (listener.isClosed) return true
    if (upToDate.size === 0) cursor = position
    if (position < cursor) return false
    listener.missed = 0
    upToDate.add(listener)
    void readNew() // a signal during the catch-up may have found no up-to-date listener
    return true
  }

  return {
    add: (listener) => void catchUp(listener),
    remove: (listener) => void upToDate.delete(listener),
    readNew,
  }
}
