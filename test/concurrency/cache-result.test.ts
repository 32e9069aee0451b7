import { expect, it } from 'vitest'
import { refreshResult } from '../../src/concurrency/cache-result.js'

it('a refreshed result is returned while the next one is computed, and not after a failure', async () => {
  let clock = 0
  let calls = 0
  const answers = [1, 2, new Error('away'), 4, 5]
  const started: Promise<unknown>[] = []
  const read = refreshResult(
    () => {
      const answer = answers[calls++]
      const call = answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
      started.push(call.catch(() => undefined))
      return call
    },
    10,
    () => clock,
  )
  const settled = async () => void (await Promise.all(started)) // the result is cached before the next call

  expect([await read(), await read(), calls]).toEqual([1, 1, 1])
  clock = 10
  expect([await read(), calls]).toEqual([1, 2])
  await settled()
  expect([await read(), calls]).toEqual([2, 2])
  clock = 20
  expect([await read(), calls]).toEqual([2, 3])
  await settled()
  expect([await read(), calls]).toEqual([4, 4])
  clock = 41
  expect([await read(), calls]).toEqual([5, 5])
})
