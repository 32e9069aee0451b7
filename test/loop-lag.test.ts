import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchLoopLag } from '../src/loop-lag.js'

describe('the watch over the event loop', () => {
  const told: number[] = []
  let utilization = 0
  let stoppedFor = 0
  let watch: { stop(): void }
  beforeEach(() => {
    vi.useFakeTimers()
    told.length = 0
    stoppedFor = 0
    utilization = 0.5
    watch = watchLoopLag((lateMs) => told.push(lateMs), {
      now: () => Date.now() + stoppedFor,
      utilization: () => utilization,
    })
  })
  afterEach(() => {
    watch.stop()
    vi.useRealTimers()
  })

  it('looks ten times a second while there is something to do', async () => {
    await vi.advanceTimersByTimeAsync(1_000)

    expect(told).toEqual(Array.from({ length: 10 }, () => 0))
  })

  it('looks once a second while there is nothing, and often again as soon as there is', async () => {
    utilization = 0.01
    await vi.advanceTimersByTimeAsync(100)
    told.length = 0
    await vi.advanceTimersByTimeAsync(5_000)
    expect(told).toHaveLength(5)

    utilization = 0.5
    await vi.advanceTimersByTimeAsync(2_000)
    expect(told).toHaveLength(5 + 1 + 10)
  })

  it('tells how late it comes itself, once', async () => {
    stoppedFor = 3_000
    await vi.advanceTimersByTimeAsync(300)

    expect(told).toEqual([3_000, 0, 0])
  })

  it('ends', async () => {
    watch.stop()
    await vi.advanceTimersByTimeAsync(5_000)

    expect(told).toEqual([])
  })
})
