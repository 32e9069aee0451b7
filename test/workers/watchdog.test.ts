import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { WorkersHealth } from '../../workers/start-workers.js'
import { startWatchdog } from '../../workers/watchdog.js'

const well: WorkersHealth = { isReady: true, hasDatabase: true, hasQueue: true, lastSweep: 1, unresponsive: [] }
const stuck: WorkersHealth = { ...well, isReady: false, unresponsive: ['fetch'] }

let health: WorkersHealth
const ask = vi.fn(async () => health)
const end = vi.fn()

beforeEach(() => {
  health = well
  end.mockClear()
  ask.mockClear()
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const watchdog = startWatchdog({ unresponsive: () => health.unresponsive, health: ask }, end, {
    intervalMs: 1_000,
    afterMs: 5_000,
  })
  return () => watchdog.stop()
})
afterEach(() => {
  vi.useRealTimers()
})

it('the watchdog ends a process that has received nothing for too long although the stores respond', async () => {
  await vi.advanceTimersByTimeAsync(10_000)
  health = stuck
  await vi.advanceTimersByTimeAsync(4_000)
  expect(end).not.toHaveBeenCalled()

  await vi.advanceTimersByTimeAsync(2_000)
  expect(end).toHaveBeenCalledWith(stuck)
})

it.each([
  ['the queue', { ...stuck, hasQueue: false }],
  ['the database', { ...stuck, hasDatabase: false }],
])('the watchdog keeps a process while %s is unavailable: a new process would receive no more', async (_, away) => {
  health = away
  await vi.advanceTimersByTimeAsync(60_000)

  expect(end).not.toHaveBeenCalled()
})

it('the watchdog starts its period again when all workers receive events', async () => {
  for (let round = 0; round < 5; round += 1) {
    health = stuck
    await vi.advanceTimersByTimeAsync(4_000)
    health = well
    await vi.advanceTimersByTimeAsync(1_000)
  }

  expect(end).not.toHaveBeenCalled()
})

it('the watchdog requests no health check while all workers receive events', async () => {
  await vi.advanceTimersByTimeAsync(60_000)
  expect(ask).not.toHaveBeenCalled()

  health = stuck
  await vi.advanceTimersByTimeAsync(1_000)
  expect(ask).toHaveBeenCalledOnce()
})
