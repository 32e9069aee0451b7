import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'

interface WatchedService {
  /** As it is named in the log. */
  readonly name: 'database' | 'queue'
  readonly log: Logger
  /** Whether the service answers, and soon. Never rejects. */
  answers(): Promise<boolean>
  /** Milliseconds between two checks during an outage. */
  readonly checkEvery?: number
}

/** Logs the beginning and the end of each outage of a service, once each. Costs nothing while the service answers. */
export interface OutageLog {
  /** For an error that an outage may have caused: checks the service once. Resolves with whether it is an outage. */
  suspect(error: unknown): Promise<boolean>
  close(): void
}

const CHECK_INTERVAL_MS = 1_000

export function openOutageLog({ name, log, answers, checkEvery = CHECK_INTERVAL_MS }: WatchedService): OutageLog {
  const closing = new AbortController()
  let check: Promise<boolean> | undefined

  async function isOutage(error: unknown): Promise<boolean> {
    const began = performance.now()
    if ((await answers()) || closing.signal.aborted) {
      check = undefined
      return closing.signal.aborted
    }
    log.warn({ err: error }, `${name} connection lost`)
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
    log.info({ seconds: Math.round((performance.now() - began) / 100) / 10 }, `${name} connection restored`)
  }

  return {
    // While the process stops, connections end; that is no outage.
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
