import { expect, it } from 'vitest'
import { openSingleFlight, singleFlight } from '../../src/concurrency/single-flight.js'

it('runs an operation once for the callers that need it while it runs, each key apart', async () => {
  const flight = openSingleFlight<string, number>()
  let runs = 0
  const operation = async () => {
    runs += 1
    return runs
  }

  const both = Promise.all([flight.run('a', operation), flight.run('a', operation), flight.run('b', operation)])
  expect([flight.size, flight.has('a'), flight.has('c')]).toEqual([2, true, false])
  expect(await both).toEqual([1, 1, 2])
  expect(await flight.run('a', operation)).toBe(3)
  expect(flight.size).toBe(0)
})

it('runs an operation again after a failure', async () => {
  let runs = 0
  const run = singleFlight(async () => {
    runs += 1
    if (runs === 1) throw new Error('first')
    return runs
  })

  const results = await Promise.allSettled([run(), run()])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await run()).toBe(2)
})
