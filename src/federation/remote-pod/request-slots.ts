import type { RemoteLimits } from '../../limits.js'
import { RemotePodError } from './remote-pod-error.js'

export type Purpose = 'fetch' | 'delivery'

export interface RequestSlots {
  /** Waits for a turn at this host and then for one of all; resolves with the way to give both back. */
  take(purpose: Purpose, host: string, signal: AbortSignal): Promise<() => void>
}

type Limits = Pick<RemoteLimits, 'atOnce' | 'fetchesPerHost' | 'deliveriesPerHost' | 'fetchesPerHostPerMinute'>

/** Bounds what is under way, so that a slow host occupies its share and no more. Who waits for a host holds no turn of the others. */
export function openRequestSlots(limits: Limits, now: () => number): RequestSlots {
  const lines = new Map<string, Line>()
  const everybody = new Line(limits.atOnce)
  const spend = openBudget(limits.fetchesPerHostPerMinute, now)
  const perHost: Readonly<Record<Purpose, number>> = {
    fetch: limits.fetchesPerHost,
    delivery: limits.deliveriesPerHost,
  }

  return {
    async take(purpose, host, signal) {
      signal.throwIfAborted()
      if (purpose === 'fetch') spend(host)
      const name = `${purpose} ${host}`
      const line = lines.get(name) ?? new Line(perHost[purpose])
      lines.set(name, line)
      const leave = () => {
        line.leave()
        if (line.isEmpty) lines.delete(name)
      }
      await line.enter(signal)
      try {
        await everybody.enter(signal)
      } catch (error) {
        leave()
        throw error
      }
      return () => {
        everybody.leave()
        leave()
      }
    },
  }
}

/** So many at once; the others wait in the order in which they came, until they are told to stop. */
class Line {
  readonly #most: number
  readonly #waiting = new Set<() => void>()
  #inside = 0

  constructor(most: number) {
    this.#most = most
  }

  get isEmpty(): boolean {
    return this.#inside === 0
  }

  async enter(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#inside < this.#most) {
      this.#inside += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const stop = () => {
        this.#waiting.delete(next)
        reject(signal.reason)
      }
      const next = () => {
        signal.removeEventListener('abort', stop)
        resolve()
      }
      this.#waiting.add(next)
      signal.addEventListener('abort', stop, { once: true })
    })
  }

  leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#inside -= 1
      return
    }
    this.#waiting.delete(next)
    next() // the place is handed on
  }
}

/** Counts by the minute of the clock; what a minute has seen is forgotten with it, so that the names of hosts do not pile up. */
function openBudget(perMinute: number, now: () => number): (host: string) => void {
  const spent = new Map<string, number>()
  let minute = 0
  return (host) => {
    const current = Math.floor(now() / 60_000)
    if (current !== minute) spent.clear()
    minute = current
    const count = spent.get(host) ?? 0
    if (count >= perMinute) {
      throw new RemotePodError('busy', `${host} was asked ${perMinute} times within this minute, and that is enough.`)
    }
    spent.set(host, count + 1)
  }
}
