import type { Knex } from 'knex'
import { openSession } from '../persistence/database/database.js'
import { isDatabaseUnavailable } from '../persistence/database/errors.js'
import type { Services } from '../services/services.js'

/** A notification between processes: something has changed. It has no content; the listener reads the database. */
export type Signal = 'announced' | 'access_ended'

export interface Signals {
  /** Calls the function after each such signal, and when one may be missed; returns a function that ends this. */
  onSignal(signal: Signal, listener: () => void): () => void
  close(): Promise<void>
}

const CHANNEL = 'pod_signals'
const RECONNECT_AFTER_MS = 1_000
/** Milliseconds between calls without a signal: a lost connection may look open for long. */
const CHECK_INTERVAL_MS = 5_000

/** The notification of PostgreSQL that carries a signal. */
export function channelSignal(signal: Signal): { readonly channel: string; readonly payload: Signal } {
  return { channel: CHANNEL, payload: signal }
}

/** Sends a signal when the transaction commits. */
export async function sendSignal(transaction: Knex.Transaction, signal: Signal): Promise<void> {
  await transaction.raw('select pg_notify(?, ?)', [CHANNEL, signal])
}

/**
 * Listens on one connection, opened for the first listener. PostgreSQL notifies within a millisecond and costs nothing while idle,
 * also with the queue in Redis. LISTEN needs a session of its own.
 */
export function openSignals({ db, log }: Pick<Services, 'db' | 'log'>): Signals {
  const listeners = new Map<Signal, Set<() => void>>()
  let session: ReturnType<typeof openSession> | undefined
  let reconnectTimer: NodeJS.Timeout | undefined
  let checkTimer: NodeJS.Timeout | undefined
  let isClosed = false

  function notify(signal: string): void {
    for (const listener of listeners.get(signal as Signal) ?? []) listener() // an unknown signal has no listener
  }
  function notifyAll(): void {
    for (const signal of listeners.keys()) notify(signal)
  }

  async function listen(): Promise<void> {
    const newSession = openSession(db, 'signals')
    session = newSession
    const reconnect = () => {
      if (session !== newSession || isClosed) return
      session = undefined
      void newSession.end().catch(() => {})
      reconnectTimer = setTimeout(listen, RECONNECT_AFTER_MS)
    }
    newSession.on('error', reconnect).on('end', reconnect)
    newSession.on('notification', ({ payload = '' }) => notify(payload))
    try {
      await newSession.connect()
      await newSession.query(`listen ${CHANNEL}`)
      notifyAll()
    } catch (err) {
      // An outage has lines of its own, and this is tried every second.
      if (isDatabaseUnavailable(err)) log.debug({ err }, 'cannot listen for signals')
      else log.warn({ err }, 'cannot listen for signals; checking every few seconds in the meantime')
      reconnect()
    }
  }

  return {
    onSignal(signal, listener) {
      const listenersOfSignal = listeners.get(signal) ?? new Set()
      listeners.set(signal, listenersOfSignal.add(listener))
      checkTimer ??= setInterval(notifyAll, CHECK_INTERVAL_MS)
      if (session === undefined && reconnectTimer === undefined) void listen()
      return () => void listenersOfSignal.delete(listener)
    },
    async close() {
      isClosed = true
      clearTimeout(reconnectTimer)
      clearInterval(checkTimer)
      await session?.end().catch(() => {})
    },
  }
}
