import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { findViewersByTokenIds, type Viewer } from '../../domain/accounts/viewers.js'
import {
  type EventRecipient,
  findLiveEvents,
  groupAnnouncementsByRecipient,
} from '../../domain/notifications/live-events.js'
import { openSignals } from '../../jobs/signals.js'
import type { LiveLimits } from '../../limits.js'
import { isDatabaseUnavailable } from '../../persistence/database/errors.js'
import { recordWrites } from '../../persistence/database/last-writes.js'
import {
  ANNOUNCEMENTS_AT_ONCE,
  type Announcement,
  findAnnouncementRange,
  listAnnouncementsAfter,
  listAnnouncementsOfUser,
} from '../../persistence/notifications/announcements.js'
import type { Pod } from '../../pod/pod.js'
import { dialectContext } from '../api/dialect.js'
import { eventText, type Gap, placeText, resetText, retryText } from './event-text.js'
import { type Listener, openListener } from './listener.js'
import { openTurns } from './turns.js'

/** Where a client wants to begin: after an announcement it knows, after one we cannot read, or with what comes now. */
export type Place = number | 'unreadable' | 'now'

/** All streams of this process. */
export interface LiveChannel {
  readonly listeners: number
  /** Why nobody more, or not this one, can listen here at the moment. */
  refusalOf(viewer: Viewer): 'full' | 'too_many' | undefined
  /** Writes to a response whose head is written, until it ends. */
  join(response: ServerResponse, recipient: EventRecipient, from: Place): void
  /** Ends all streams, and lets nobody in any more. */
  close(): Promise<void>
}

/**
 * Announcements are read once for all who listen and have heard everything before. Who comes back, or is too slow, reads what
 * they have missed from the database by themselves until they have it all: nothing is kept here for anybody.
 */
export function openLiveChannel(pod: Pod, limits: LiveLimits): LiveChannel {
  const signals = openSignals(pod)
  const everybody = new Set<Listener>()
  /** Those who have heard everything up to the cursor. */
  const upToDate = new Set<Listener>()
  const catchingUp = openTurns(limits.catchingUpAtOnce)
  const showing = openTurns(limits.showingAtOnce)
  let cursor = 0
  let looking = false
  let lookAgain = false
  let closed = false
  let reportedAt = 0
  let stopAll: (() => void) | undefined

  function begin(): () => void {
    const stopHearing = [
      signals.hear('announced', () => void look()),
      signals.hear('access_ended', () => void checkTokens([...everybody]).catch(report)),
    ]
    const timers = [
      setInterval(() => {
        for (const listener of everybody) listener.beat()
      }, limits.heartbeatMs),
      setInterval(() => void checkTokens([...everybody]).catch(report), limits.tokensAgainMs),
    ]
    return () => {
      for (const stop of stopHearing) stop()
      for (const timer of timers) clearInterval(timer)
    }
  }

  async function look(): Promise<void> {
    lookAgain = true
    if (looking) return
    looking = true
    try {
      while (lookAgain) {
        lookAgain = false
        while (upToDate.size > 0 && (await tellNext()));
      }
    } catch (error) {
      report(error) // nobody was told, and the next look is seconds away
    } finally {
      looking = false
    }
  }

  /** Tells all who are up to date of what comes next; false: there is nothing. */
  async function tellNext(): Promise<boolean> {
    const after = cursor
    const announcements = await listAnnouncementsAfter(pod.db, after)
    const upTo = announcements.at(-1)?.id
    if (upTo === undefined) return false
    if (cursor !== after) return true // all have gone, and who came then has not heard as much
    const listeners = new Set(upToDate)
    const audience = await groupAnnouncementsByRecipient(pod, announcements, [...listeners])
    await checkTokens([...audience.keys()])
    await noteTold([...audience.keys()])

    cursor = upTo
    for (const listener of upToDate) if (!listeners.has(listener)) fallBehind(listener) // they came meanwhile
    const telling = [...listeners].map(async (listener) => {
      try {
        if (!(await tell(listener, audience.get(listener), upTo))) fallBehind(listener)
      } catch (error) {
        report(error)
        fallBehind(listener)
      }
    })
    await Promise.all(telling)
    return true
  }

  /** Returns whether the listener can take more. */
  async function tell(
    listener: Listener,
    announcements: readonly Announcement[] | undefined,
    upTo: number,
  ): Promise<boolean> {
    const { position = 0 } = listener
    const unheard = (announcements ?? []).filter(({ id }) => id > position)
    for (let from = 0; from < unheard.length; from += limits.writtenAtOnce) {
      const some = unheard.slice(from, from + limits.writtenAtOnce)
      const events = await showing(() => findLiveEvents(pod, listener.viewer, some))
      const context = dialectContext(pod.config, listener.viewer)
      const canTakeMore = listener.write(events.map((event) => eventText(event, context)).join(''))
      listener.position = some.at(-1)?.id ?? upTo
      if (!canTakeMore) return false
    }
    listener.position = Math.max(position, upTo)
    return true
  }

  function fallBehind(listener: Listener): void {
    upToDate.delete(listener)
    void catchUp(listener)
  }

  async function catchUp(listener: Listener): Promise<void> {
    while (!listener.closed) {
      try {
        await listener.drained()
        const isUpToDate = await catchingUp(async () => listener.closed || tellMissed(listener))
        if (isUpToDate && stepIn(listener)) return
      } catch (error) {
        report(error)
        await pause(limits.againAfterMs)
      }
    }
  }

  /** Nothing has been told to the others that this one has not heard: from now on it hears what they hear. */
  function stepIn(listener: Listener): boolean {
    const { position = 0 } = listener
    if (listener.closed) return true
    if (upToDate.size === 0) cursor = position
    if (position < cursor) return false
    listener.missed = 0
    upToDate.add(listener)
    void look() // a signal that came a moment ago has found nobody to tell
    return true
  }

  /** The next of what a listener has missed; returns whether that was all. */
  async function tellMissed(listener: Listener): Promise<boolean> {
    const { from, newest } = await findAnnouncementRange(pod.db)
    if (listener.position === undefined) return await place(listener, newest, placeText(newest))
    const gap = gapBefore(listener, listener.position, { from, newest })
    if (gap !== undefined) return await place(listener, newest, resetText(newest, gap))

    const { userId } = listener.viewer
    const missed = await listAnnouncementsOfUser(pod.db, { userId, after: listener.position, upTo: newest })
    const isAll = missed.length < ANNOUNCEMENTS_AT_ONCE
    const audience = await groupAnnouncementsByRecipient(pod, missed, [listener])
    await checkTokens([...audience.keys()])
    await noteTold([...audience.keys()])
    const canTakeMore = await tell(listener, audience.get(listener), isAll ? newest : (missed.at(-1)?.id ?? newest))
    const { position = 0 } = listener
    listener.missed += missed.filter(({ id }) => id <= position).length
    return isAll && canTakeMore
  }

  function gapBefore(
    { missed }: Listener,
    position: number,
    { from, newest }: { readonly from: number; readonly newest: number },
  ): Gap | undefined {
    if (position < 0 || position > newest) return 'unknown'
    if (position < from) return 'too_old'
    return missed > limits.missed ? 'too_many' : undefined
  }

  async function place(listener: Listener, position: number, text: string): Promise<true> {
    await noteTold([listener])
    listener.write(text)
    listener.position = position
    listener.missed = 0
    return true
  }

  /** No list that they read from now on may be older than what they are told. */
  async function noteTold(listeners: readonly Listener[]): Promise<void> {
    const users = new Set(listeners.map(({ viewer }) => viewer.userId))
    if (pod.replica !== undefined) await recordWrites(pod.db, [...users])
  }

  /** Tokens may have been revoked, have expired or have got other scopes since. */
  async function checkTokens(listeners: readonly Listener[]): Promise<void> {
    if (listeners.length === 0) return
    const ids = listeners.flatMap(({ viewer }) => viewer.tokenId ?? [])
    const viewers = await findViewersByTokenIds(pod, ids)
    for (const listener of listeners) {
      const viewer = viewers.get(listener.viewer.tokenId ?? 0)
      if (viewer === undefined) listener.end()
      else listener.viewer = viewer
    }
  }

  /** An outage of the database has lines of its own. */
  function report(error: unknown): void {
    if (isDatabaseUnavailable(error) || Date.now() - reportedAt < limits.reportEveryMs) return
    reportedAt = Date.now()
    pod.log.warn({ err: error }, 'could not tell everybody who listens; they are told later')
  }

  return {
    get listeners() {
      return everybody.size
    },

    refusalOf({ userId }) {
      if (closed || everybody.size >= limits.listeners) return 'full'
      const own = [...everybody].filter(({ viewer }) => viewer.userId === userId).length
      return own >= limits.listenersOfUser ? 'too_many' : undefined
    },

    join(response, recipient, from) {
      const { socket } = response.req
      if (socket.destroyed) return
      const listener = openListener(response, recipient, limits)
      if (from !== 'now') listener.position = from === 'unreadable' ? -1 : from
      // Clients of a process that ends do not all come back in the same moment.
      listener.write(retryText(limits.retryMs + Math.floor(Math.random() * limits.retrySpreadMs)))
      everybody.add(listener)
      const leave = () => {
        socket.off('close', leave)
        response.destroy()
        everybody.delete(listener)
        upToDate.delete(listener)
        if (everybody.size > 0) return
        stopAll?.()
        stopAll = undefined
      }
      response.once('close', leave)
      // A response that waits behind another one on the same connection does not say that it is closed.
      socket.once('close', leave)
      stopAll ??= begin()
      void catchUp(listener)
    },

    async close() {
      closed = true
      for (const listener of everybody) listener.end()
      stopAll?.()
      await signals.close()
    },
  }
}
