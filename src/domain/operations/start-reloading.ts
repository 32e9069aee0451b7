import type { Services } from '../../services/services.js'

/** Milliseconds between two readings while the settings are used. */
const RELOAD_INTERVAL_MS = 3_000
/** Older settings are read again before they are used: a change is in force in all processes within five seconds. */
const USABLE_FOR_MS = 4_500

/** Settings of moderators that a running process reads again and again while it uses them; an idle process reads nothing. */
export interface Reloading {
  /** Call it before each use. Resolves when the settings are new enough; undefined: they are. */
  ensureFresh(): Promise<void> | undefined
  close(): void
}

/** Reads the settings at once. After a failure those of before stay in force. `reload` returns whether they have changed since. */
export function startReloading(
  { log }: Pick<Services, 'log'>,
  what: string,
  reload: () => Promise<boolean>,
): Reloading {
  let isUsed = false
  let readAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined
  /** The reading for which uses wait. */
  let runningRead: Promise<void> | undefined

  function read(): Promise<void> {
    readAt = performance.now()
    reading ??= reload()
      .then((hasChanged) => {
        if (hasChanged) log.info({ what }, 'rules reloaded')
      })
      .catch((err) => log.debug({ err, what }, 'settings of moderators not reloaded'))
      .finally(() => {
        reading = undefined
      })
    return reading
  }

  void read()
  const timer = setInterval(() => {
    if (isUsed) void read()
    isUsed = false
  }, RELOAD_INTERVAL_MS)
  return {
    ensureFresh() {
      isUsed = true
      if (performance.now() - readAt > USABLE_FOR_MS) {
        runningRead = read().finally(() => {
          runningRead = undefined
        })
      }
      return runningRead
    },
    close: () => clearInterval(timer),
  }
}
