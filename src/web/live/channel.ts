import type { ServerResponse } from 'node:http'
import type { Viewer } from '../../domain/accounts/viewers.js'
import type { EventRecipient } from '../../domain/notifications/live-events.js'
import { openSignals } from '../../jobs/signals.js'
import { isDatabaseUnavailable } from '../../persistence/database/errors.js'
import type { Services } from '../../services/services.js'
import { endInvalidTokens, openEventDelivery } from './deliver-events.js'
import { retryText } from './event-text.js'
import type { LiveLimits } from './limits.js'
import { type Listener, openListener } from './listener.js'
import { openSharedFeed } from './shared-feed.js'

/** Where a stream starts: after the live event with this id, after an id that the pod cannot read, or with new events. */
export type StartPosition = number | 'unreadable' | 'now'

/** All event streams of this process. */
export interface LiveChannel {
  readonly listeners: number
  /** Why this viewer cannot open another stream at the moment. */
  refusalOf(viewer: Viewer): 'full' | 'too_many' | undefined
  /** Writes to a response whose head is written, until it ends. */
  join(response: ServerResponse, recipient: EventRecipient, from: StartPosition): void
  /** Ends all streams and accepts no new ones. */
  endStreams(): void
  close(): Promise<void>
}

/** Owns the set of open streams. Signals and timers run only while there is a stream. */
export function openLiveChannel(services: Services, limits: LiveLimits): LiveChannel {
  const signals = openSignals(services)
  const listeners = new Set<Listener>()
  const report = openFailureLog(services, limits.reportIntervalMs)
  const feed = openSharedFeed(services, openEventDelivery(services, limits), limits, report)
  let isClosed = false
  let stopWatching: (() => void) | undefined

  function startWatching(): () => void {
    const checkTokens = () => void endInvalidTokens(services, [...listeners]).catch(report)
    const unsubscribe = [
      signals.onSignal('announced', () => void feed.readNew()),
      signals.onSignal('access_ended', checkTokens),
    ]
    const timers = [
      setInterval(() => {
        for (const listener of listeners) listener.sendHeartbeat()
      }, limits.heartbeatMs),
      setInterval(checkTokens, limits.tokensAgainMs),
    ]
    return () => {
      for (const stop of unsubscribe) stop()
      for (const timer of timers) clearInterval(timer)
    }
  }

  function add(listener: Listener): void {
    listeners.add(listener)
    stopWatching ??= startWatching()
    feed.add(listener)
  }

  function remove(listener: Listener): void {
    listeners.delete(listener)
    feed.remove(listener)
    if (listeners.size > 0) return
    stopWatching?.()
    stopWatching = undefined
  }

  function endStreams(): void {
    isClosed = true
    for (const listener of listeners) listener.end()
  }

  return {
    get listeners() {
      return listeners.size
    },

    refusalOf({ userId }) {
      if (isClosed || listeners.size >= limits.listeners) return 'full'
      const listenersOfUser = [...listeners].filter(({ viewer }) => viewer.userId === userId).length
      return listenersOfUser >= limits.listenersOfUser ? 'too_many' : undefined
    },

    join(response, recipient, from) {
      const { socket } = response.req
      if (socket.destroyed) return
      const listener = openListener(response, recipient, limits)
      if (from !== 'now') listener.position = from === 'unreadable' ? -1 : from
      // A random part, so that the clients of a process that ends do not all reconnect at the same moment.
      listener.write(retryText(limits.retryMs + Math.floor(Math.random() * limits.retrySpreadMs)))
      const leave = () => {
        socket.off('close', leave)
        response.destroy()
        remove(listener)
      }
      response.once('close', leave)
      // A response after another one on the same connection does not emit `close`.
      socket.once('close', leave)
      add(listener)
    },

    endStreams,

    async close() {
      endStreams()
      stopWatching?.()
      await signals.close()
    },
  }
}

/** Logs at most one failure per `everyMs`. Database outages are logged elsewhere. */
function openFailureLog(services: Services, everyMs: number): (error: unknown) => void {
  let loggedAt = 0
  return (error) => {
    if (isDatabaseUnavailable(error) || Date.now() - loggedAt < everyMs) return
    loggedAt = Date.now()
    services.log.warn({ err: error }, 'sending live events failed; will be retried')
  }
}
