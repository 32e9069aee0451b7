import { describe, expect, it, vi } from 'vitest'
import { openInProcessDeliveries } from '../../src/jobs/in-process-runs/in-process-deliveries.js'

/** Runs that end when the test says so. */
function openRuns() {
  const started: number[] = []
  const ends: (() => void)[] = []
  const run = (podId: number) => {
    started.push(podId)
    return new Promise<void>((resolve) => ends.push(resolve))
  }
  return { started, run, endNext: () => ends.shift()?.() }
}

describe('deliveries that start without a job', () => {
  it('are none in a process that serves none', () => {
    expect(openInProcessDeliveries().start([1, 2])).toEqual([1, 2])
  })

  it('run as many at a time as may; the other pods get jobs', () => {
    const { started, run } = openRuns()
    const deliveries = openInProcessDeliveries()
    deliveries.serve({ maxConcurrent: 2, run })

    expect(deliveries.start([1, 2, 3])).toEqual([3])
    expect(started).toEqual([1, 2])
  })

  it('run once more if any number of deliveries for their pod was written in the meantime', async () => {
    const { started, run, endNext } = openRuns()
    const deliveries = openInProcessDeliveries()
    deliveries.serve({ maxConcurrent: 1, run })
    deliveries.start([1])

    expect([deliveries.start([1]), deliveries.start([1])]).toEqual([[], []])
    endNext()
    await vi.waitFor(() => expect(started).toEqual([1, 1]))
    endNext()
    await vi.waitFor(() => expect(deliveries.start([2])).toEqual([]))

    expect(started).toEqual([1, 1, 2])
  })

  it('release their capacity when they fail', async () => {
    const run = vi.fn(() => Promise.reject(new Error('The database does not answer.')))
    const deliveries = openInProcessDeliveries()
    deliveries.serve({ maxConcurrent: 1, run })
    deliveries.start([1])

    await vi.waitFor(() => expect(deliveries.start([2])).toEqual([]))
    expect(run).toHaveBeenCalledTimes(2)
  })

  it('start no more after their process has stopped serving, nor while an operator has stopped their queue', () => {
    const { started, run } = openRuns()
    const deliveries = openInProcessDeliveries()
    const end = deliveries.serve({ maxConcurrent: 9, run })

    deliveries.stop(true)
    expect(deliveries.start([1])).toEqual([1])
    deliveries.stop(false)
    expect(deliveries.start([2])).toEqual([])
    end()
    expect(deliveries.start([3])).toEqual([3])
    expect(started).toEqual([2])
  })
})
