import { setTimeout as pause } from 'node:timers/promises'

const LOOK_EVERY = 100

/** Asks until the answer is yes; a question that fails, because what it is put to is away, is put again. */
export async function until(what: string, within: number, ask: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + within
  for (;;) {
    try {
      if (await ask()) return
    } catch (error) {
      if (Date.now() > end) throw error
    }
    if (Date.now() > end) throw new Error(`after ${within} ms there is still not: ${what}`)
    await pause(LOOK_EVERY)
  }
}
