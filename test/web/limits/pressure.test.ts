import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { watchPressure } from '../../../src/web/limits/load-shedding.js'

describe('pressure', () => {
  let lateBy = 0
  let utilization = 1
  let pressure: ReturnType<typeof watchPressure>
  beforeEach(() => {
    vi.useFakeTimers()
    lateBy = 0
    utilization = 1
    pressure = watchPressure(1_000, { now: () => Date.now() + stopped, utilization: () => utilization })
  })
  afterEach(() => {
    pressure.stop()
    vi.useRealTimers()
  })

  let stopped = 0
  /** What happens to the clock while the loop is about to take its next look. */
  async function look(times: number): Promise<void> {
    for (let time = 0; time < times; time += 1) {
      stopped += lateBy
      await vi.advanceTimersByTimeAsync(100)
    }
  }

  it('is not high after one long stop', async () => {
    await look(5)
    lateBy = 60_000
    await look(1)
    lateBy = 0

    expect(pressure.isHigh()).toBe(false)
    await look(1)
    expect(pressure.isHigh()).toBe(false)
  })

  it('is high when the event loop is late again and again, and no more when it has mostly been in time', async () => {
    await look(5)
    lateBy = 1_001
    await look(2)
    expect(pressure.isHigh()).toBe(false)
    await look(1)
    expect(pressure.isHigh()).toBe(true)

    lateBy = 0
    await look(2)
    expect(pressure.isHigh()).toBe(true)
    await look(1)
    expect(pressure.isHigh()).toBe(false)
  })

  it('is over soon, although there is nothing to do any more', async () => {
    utilization = 0
    lateBy = 2_000
    pressure.isHigh()
    await look(5)
    expect(pressure.isHigh()).toBe(true)

    lateBy = 0
    await look(3)
    expect(pressure.isHigh()).toBe(false)
  })

  it('is not high when the event loop is late by no more than it may be', async () => {
    lateBy = 999
    await look(10)

    expect(pressure.isHigh()).toBe(false)
  })
})
