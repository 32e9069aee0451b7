import type { Knex } from 'knex'
import { openSession } from '../persistence/database/database.js'
import { isDatabaseUnavailable } from '../persistence/database/errors.js'
import type { Pod } from '../pod/pod.js'

/** What one process notifies the others of at once: that something has changed, never what. A listener looks for itself. */
export type Signal = 'announced' | 'access_ended'

export interface Signals {
  /** Calls after each such signal and whenever one may have been missed; returns what ends that. */
  hear(signal: Signal, look: () => void): () => void
  close(): Promise<void>
}

const CHANNEL = 'pod_signals'
const AGAIN_AFTER_MS = 1_000
/** A connection that is gone for good may look open for long. */
const LOOK_ANYWAY_MS = 5_000

/** Heard when the transaction commits. */
export async function giveSignal(transaction: Knex.Transaction, signal: Signal): Promise<void> {
  await transaction.raw('select pg_notify(?, ?)', [CHANNEL, signal])
}

/**
 * Listens on one connection, which is opened for the first who wants to hear something. PostgreSQL tells who listens within a
 * millisecond and costs nothing while nothing happens, on whatever the queue runs; it needs a session of its own.
 */
export function openSignals({ db, log }: Pick<Pod, 'db' | 'log'>): Signals {
  const ears = new Map<Signal, Set<() => void>>()
  let session: ReturnType<typeof openSession> | undefined
  let again: NodeJS.Timeout | undefined
  let anyway: NodeJS.Timeout | undefined
  let closed = false

  function tell(signal: string): void {
    for (const look of ears.get(signal as Signal) ?? []) look() // one that nobody here knows has no ears
  }
  function tellAll(): void {
    for (const signal of ears.keys()) tell(signal)
  }

  async function listen(): Promise<void> {
    const mine = openSession(db, 'signals')
    session = mine
    const lost = () => {
      if (session !== mine || closed) return
      session = undefined
      void mine.end().catch(() => {})
      again = setTimeout(listen, AGAIN_AFTER_MS)
    }
    mine.on('error', lost).on('end', lost)
    mine.on('notification', ({ payload = '' }) => tell(payload))
    try {
      await mine.connect()
      await mine.query(`listen ${CHANNEL}`)
      tellAll()
    } catch (err) {
      // An outage has lines of its own, and this is tried every second.
      if (isDatabaseUnavailable(err)) log.debug({ err }, 'cannot listen for signals')
      else log.warn({ err }, 'cannot listen for signals; checking every few seconds meanwhile')
      lost()
    }
  }

  return {
    hear(signal, look) {
      const looks = ears.get(signal) ?? new Set()
      ears.set(signal, looks.add(look))
      anyway ??= setInterval(tellAll, LOOK_ANYWAY_MS)
      if (session === undefined && again === undefined) void listen()
      return () => void looks.delete(look)
    },
    async close() {
      closed = true
      clearTimeout(again)
      clearInterval(anyway)
      await session?.end().catch(() => {})
    },
  }
}
