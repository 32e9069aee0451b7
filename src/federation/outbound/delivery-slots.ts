import { Semaphore } from '../../concurrency/semaphore.js'
import type { DeliveryLimits } from './limits.js'

export interface DeliverySlots {
  /** Waits for a slot; resolves with the function that releases it. Runs take turns. */
  acquire(signal: AbortSignal, run: object): Promise<() => void>
  /** Resolves when no proven pod waits for a slot, after `unprovenWaitMs` at the latest. */
  untilUncontended(signal: AbortSignal): Promise<void>
}

const POLL_INTERVAL_MS = 50

/**
 * Slots for proven pods. Runs take turns, so that a run for one pod does not wait for a post to thousands. A pod that is not done
 * after `slotMs` continues without its slot, so that pods that do not answer hold no slots. At most `maxPodsWithoutSlot` do so at a time;
 * a pod over this limit keeps its slot and is checked again after the next `slotMs`.
 */
export function openDeliverySlots({
  maxConcurrentPods,
  maxPodsWithoutSlot,
  slotMs,
  unprovenWaitMs,
}: Pick<DeliveryLimits, 'maxConcurrentPods' | 'maxPodsWithoutSlot' | 'slotMs' | 'unprovenWaitMs'>): DeliverySlots {
  const semaphore = new Semaphore(maxConcurrentPods)
  let podsWithoutSlot = 0
  return {
    async acquire(signal, run) {
      await semaphore.acquire(signal, run)
      let isWithoutSlot = false
      const timer = setInterval(() => {
        if (podsWithoutSlot >= maxPodsWithoutSlot) return
        clearInterval(timer)
        isWithoutSlot = true
        podsWithoutSlot += 1
        semaphore.release()
      }, slotMs)
      return () => {
        clearInterval(timer)
        if (isWithoutSlot) podsWithoutSlot -= 1
        else semaphore.release()
      }
    },
    async untilUncontended(signal) {
      const until = performance.now() + unprovenWaitMs
      while (semaphore.isContended && performance.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS))
        signal.throwIfAborted()
      }
    },
  }
}
