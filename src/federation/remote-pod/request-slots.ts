import { Semaphore } from '../../concurrency/semaphore.js'
import type { RemoteLimits } from './limits.js'
import { RemotePodError } from './remote-pod-error.js'

export type Purpose = 'fetch' | 'delivery'

export interface RequestSlots {
  /** Waits for a slot of this host and then for a slot of the process. Resolves with the function that releases both. */
  acquire(purpose: Purpose, host: string, signal: AbortSignal): Promise<() => void>
}

type SlotLimits = Pick<
  RemoteLimits,
  'maxConcurrent' | 'fetchesPerHost' | 'deliveriesPerHost' | 'fetchesPerHostPerMinute'
>

/**
 * Limits concurrent requests, so that a slow host occupies only its own share. A request that waits for its host does not hold a
 * slot of the process.
 */
export function openRequestSlots(limits: SlotLimits, now: () => number): RequestSlots {
  const hostSlots = new Map<string, Semaphore>()
  const processSlots = new Semaphore(limits.maxConcurrent)
  const spendFetch = openFetchBudget(limits.fetchesPerHostPerMinute, now)
  const slotsPerHost: Readonly<Record<Purpose, number>> = {
    fetch: limits.fetchesPerHost,
    delivery: limits.deliveriesPerHost,
  }

  return {
    async acquire(purpose, host, signal) {
      signal.throwIfAborted()
      if (purpose === 'fetch') spendFetch(host)
      const key = `${purpose} ${host}`
      const slots = hostSlots.get(key) ?? new Semaphore(slotsPerHost[purpose])
      hostSlots.set(key, slots)
      const releaseHost = () => {
        slots.release()
        if (slots.isIdle) hostSlots.delete(key)
      }
      await slots.acquire(signal)
      try {
        await processSlots.acquire(signal)
      } catch (error) {
        releaseHost()
        throw error
      }
      return () => {
        processSlots.release()
        releaseHost()
      }
    },
  }
}

/** Counts fetches per host and clock minute. The counts of the last minute are dropped, so that host names do not pile up. */
function openFetchBudget(perMinute: number, now: () => number): (host: string) => void {
  const spent = new Map<string, number>()
  let minute = 0
  return (host) => {
    const current = Math.floor(now() / 60_000)
    if (current !== minute) spent.clear()
    minute = current
    const count = spent.get(host) ?? 0
    if (count >= perMinute) {
      throw new RemotePodError('busy', `${host} has had ${perMinute} requests within this minute, which is the limit.`)
    }
    spent.set(host, count + 1)
  }
}
