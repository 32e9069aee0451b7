import { setTimeout as pause } from 'node:timers/promises'

const POLL_INTERVAL_MS = 100

/** Polls until the condition is true; an attempt that throws, for example during an outage, is repeated. */
export async function until(what: string, within: number, ask: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + within
  for (;;) {
    try {
      if (await ask()) return
    } catch (error) {
      if (Date.now() > end) throw error
    }
    if (Date.now() > end) throw new Error(`after ${within} ms there is still not: ${what}`)
    await pause(POLL_INTERVAL_MS)
  }
}
