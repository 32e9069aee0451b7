import type { Logger } from 'pino'

const LOG_INTERVAL_MS = 60_000

/** Logs one line per minute and kind of error: the same error may repeat hundreds of times a second. */
export function throttledLog(log: Logger, now: () => number = Date.now): (where: string, error: Error) => void {
  const lastLogTimes = new Map<string, number>()
  return (where, error) => {
    const kind = `${where} ${'code' in error ? String(error.code) : error.name}`
    const last = lastLogTimes.get(kind)
    if (last !== undefined && now() - last < LOG_INTERVAL_MS) return
    if (lastLogTimes.size > 100) lastLogTimes.clear()
    lastLogTimes.set(kind, now())
    log.warn({ err: error, where }, 'queue error')
  }
}
