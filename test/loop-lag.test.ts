import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type LoopWatch, watchLoopLag } from '../src/logging/loop-lag.js'

describe('the watch over the event loop', () => {
  const told: number[] = []
  let utilization = 0
  let stoppedFor = 0
  let isWanted = false
  let watch: LoopWatch
  beforeEach(() => {
    vi.useFakeTimers()
    told.length = 0
    stoppedFor = 0
    utilization = 0.5
    isWanted = false
    const tell = (lateMs: number) => {
      told.push(lateMs)
      return isWanted
    }
    watch = watchLoopLag(tell, { now: () => Date.now() + stoppedFor, utilization: () => utilization })
  })
  afterEach(() => {
    watch.stop()
    vi.useRealTimers()
  })

  it('measures ten times a second while there is work', async () => {
    await vi.advanceTimersByTimeAsync(1_000)

    expect(told).toEqual(Array.from({ length: 10 }, () => 0))
  })

  it('measures every five seconds while idle, and often again as soon as there is work', async () => {
    utilization = 0.01
    await vi.advanceTimersByTimeAsync(100)
    told.length = 0
    await vi.advanceTimersByTimeAsync(20_000)
    expect(told).toHaveLength(4)

    utilization = 0.5
    await vi.advanceTimersByTimeAsync(6_000)
    expect(told).toHaveLength(4 + 1 + 10)
  })

  it('measures at once when work is announced, for any number of announcements', async () => {
    utilization = 0.01
    await vi.advanceTimersByTimeAsync(100)
    told.length = 0
    utilization = 0.5
    for (let times = 0; times < 10; times += 1) {
      watch.wake()
      await vi.advanceTimersByTimeAsync(50)
    }

    expect(told).toHaveLength(5)
  })

  it('measures often while readings are requested', async () => {
    utilization = 0
    isWanted = true
    await vi.advanceTimersByTimeAsync(1_000)

    expect(told).toHaveLength(10)
  })

  it('reports its own delay once', async () => {
    stoppedFor = 3_000
    await vi.advanceTimersByTimeAsync(300)

    expect(told).toEqual([3_000, 0, 0])
  })

  it('reports nothing after it was stopped', async () => {
    watch.stop()
    await vi.advanceTimersByTimeAsync(5_000)

    expect(told).toEqual([])
  })
})
