import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { openDeliverySlots } from '../../../src/federation/outbound/delivery-slots.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const limits = { maxConcurrentPods: 1, maxPodsWithoutSlot: 2, slotMs: 250, unprovenWaitMs: 2_000 }

/** Acquires slots and records the order in which they are granted. */
function openRecordedSlots() {
  const slots = openDeliverySlots(limits)
  const granted: string[] = []
  const { signal } = new AbortController()
  return {
    granted,
    untilUncontended: () => slots.untilUncontended(signal).then(() => void granted.push('unproven')),
    async acquire(name: string, run: object): Promise<() => void> {
      const release = await slots.acquire(signal, run)
      granted.push(name)
      return release
    },
  }
}

/** Lets all callers continue that have been granted a slot. */
async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0)
}

it('a run for one pod waits for one pod of a larger run, not for all of them', async () => {
  const { acquire, granted } = openRecordedSlots()
  const [large, single] = [{}, {}]
  const release = await acquire('large 1', large)
  const waiting = [acquire('large 2', large), acquire('large 3', large), acquire('single', single)]

  release()
  for (const next of [waiting[0], waiting[2], waiting[1]]) (await next)?.()

  expect(granted).toEqual(['large 1', 'large 2', 'single', 'large 3'])
})

it('a pod that is not done in time passes its slot on, and its end frees no second one', async () => {
  const { acquire, granted } = openRecordedSlots()
  const run = {}
  const release = await acquire('slow', run)
  void acquire('second', run)
  void acquire('third', run)
  await vi.advanceTimersByTimeAsync(limits.slotMs - 1)
  expect(granted).toEqual(['slow'])

  await vi.advanceTimersByTimeAsync(1)
  expect(granted).toEqual(['slow', 'second'])
  release()
  await settle()
  expect(granted).toEqual(['slow', 'second'])
})

it('only a few pods continue without a slot; the next ones pass theirs on when one of them has ended', async () => {
  const { acquire, granted } = openRecordedSlots()
  const run = {}
  const releaseFirst = await acquire('1', run)
  for (const name of ['2', '3', '4']) void acquire(name, run)
  await vi.advanceTimersByTimeAsync(10 * limits.slotMs)
  expect(granted).toEqual(['1', '2', '3'])

  releaseFirst()
  await vi.advanceTimersByTimeAsync(limits.slotMs)
  expect(granted).toEqual(['1', '2', '3', '4'])
})

it('an unproven pod starts at once unless proven pods wait for a slot, and after two seconds at the latest', async () => {
  const { acquire, granted, untilUncontended } = openRecordedSlots()
  await untilUncontended()
  const run = {}
  for (const name of ['1', '2', '3', '4', '5']) void acquire(name, run)
  await settle()
  void untilUncontended()
  await vi.advanceTimersByTimeAsync(limits.unprovenWaitMs - 100)
  expect(granted).toEqual(['unproven', '1', '2', '3'])

  await vi.advanceTimersByTimeAsync(100)
  expect(granted).toEqual(['unproven', '1', '2', '3', 'unproven'])
})

it('an unproven pod continues soon after the last proven one has got its slot', async () => {
  const { acquire, granted, untilUncontended } = openRecordedSlots()
  const run = {}
  const release = await acquire('1', run)
  void acquire('2', run)
  void untilUncontended()
  release()
  await vi.advanceTimersByTimeAsync(100)
  expect(granted).toEqual(['1', '2', 'unproven'])
})
