import type { Pod } from '../../pod/pod.js'

/** Milliseconds between two readings, so that a change is in force in all processes within five seconds. */
const RELOAD_EVERY_MS = 3_000

/** Reads settings of moderators again while a process runs, and at once. After a failure those of before stay in force. */
export function startReloading(
  { log }: Pick<Pod, 'log'>,
  what: string,
  reload: () => Promise<void>,
): { close(): void } {
  const run = () => void reload().catch((err) => log.debug({ err }, `${what} not reloaded`))
  run()
  const timer = setInterval(run, RELOAD_EVERY_MS)
  return { close: () => clearInterval(timer) }
}
