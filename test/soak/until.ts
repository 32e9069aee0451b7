import { setTimeout as pause } from 'node:timers/promises'

const POLL_INTERVAL_MS = 100

/** Polls until the condition is true. A condition that throws is repeated, because stores may be unavailable. */
export async function until(description: string, timeoutMs: number, condition: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + timeoutMs
  for (;;) {
    try {
      if (await condition()) return
    } catch (error) {
      if (Date.now() > end) throw error
    }
    if (Date.now() > end) throw new Error(`Timed out after ${timeoutMs} ms, waiting until: ${description}`)
    await pause(POLL_INTERVAL_MS)
  }
}
