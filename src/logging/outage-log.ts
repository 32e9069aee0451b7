import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'

interface WatchedService {
  /** Name of the service in the log. */
  readonly name: 'database' | 'queue'
  readonly log: Logger
  /** Whether the service answers, and soon. Never rejects. */
  answers(): Promise<boolean>
  /** Milliseconds between two checks during an outage. */
  readonly checkEvery?: number
}

/** Logs the beginning and the end of each outage of a service, once each. Costs nothing while the service answers. */
export interface OutageLog {
  /** Checks the service once after an error that an outage may have caused. Resolves with whether it is an outage. */
  suspect(error: unknown): Promise<boolean>
  close(): void
}

const CHECK_INTERVAL_MS = 1_000

/** Whole messages, so that a search for one finds its line in the log and this file. */
const MESSAGES = {
  database: { lost: 'database connection lost', restored: 'database connection restored' },
  queue: { lost: 'queue connection lost', restored: 'queue connection restored' },
} as const satisfies Readonly<Record<WatchedService['name'], unknown>>

export function openOutageLog({ name, log, answers, checkEvery = CHECK_INTERVAL_MS }: WatchedService): OutageLog {
  const closing = new AbortController()
  let check: Promise<boolean> | undefined

  async function isOutage(error: unknown): Promise<boolean> {
    const began = performance.now()
    if ((await answers()) || closing.signal.aborted) {
      check = undefined
      return closing.signal.aborted
    }
    log.warn({ err: error }, MESSAGES[name].lost)
    void logEnd(began)
    return true
  }

  async function logEnd(began: number): Promise<void> {
    do {
      await pause(checkEvery, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      if (closing.signal.aborted) return
    } while (!(await answers()))
    if (closing.signal.aborted) return
    check = undefined
    log.info({ seconds: Math.round((performance.now() - began) / 100) / 10 }, MESSAGES[name].restored)
  }

  return {
    // While the process stops, connections end; this is not an outage.
    suspect(error) {
      if (closing.signal.aborted) return Promise.resolve(true)
      // Later: the check itself may fail at once, and suspect an outage too.
      check ??= Promise.resolve().then(() => isOutage(error))
      return check
    },
    close() {
      closing.abort()
    },
  }
}
