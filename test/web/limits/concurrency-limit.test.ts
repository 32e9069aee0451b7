import { describe, expect, it } from 'vitest'
import { openConcurrencyLimit } from '../../../src/web/limits/concurrency-limit.js'

type QueueOptions = Parameters<typeof openConcurrencyLimit>[0]['queue']

/** All places are in use: two by user 1, one by user 2. Each running operation ends with its function in `finish`. */
const openFull = (queue?: QueueOptions) => {
  const limit = openConcurrencyLimit({ limit: 'searches', total: 3, perKey: 2, ...(queue && { queue }) })
  const finish: (() => void)[] = []
  const occupy = (userId: number) => limit.run(userId, () => new Promise<void>((resolve) => finish.push(resolve)))
  return { ...limit, occupy, finish, running: [occupy(1), occupy(1), occupy(2)] }
}
const work = async () => 'done'

it('runs as many operations of one user and in total as allowed, and accepts others when one has ended', async () => {
  const { run, occupy, finish, running } = openFull()

  await expect(run(1, work)).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  await expect(run(3, work)).rejects.toMatchObject({ status: 503 })

  finish[0]?.()
  await running[0]
  const other = occupy(3)
  await expect(run(1, work)).rejects.toMatchObject({ status: 503 })
  finish[3]?.()
  await other
  expect(await run(1, work)).toBe('done')
})

it('frees the place of an operation that failed', async () => {
  const { run } = openConcurrencyLimit({ limit: 'searches', total: 1, perKey: 1 })
  await expect(run(1, () => Promise.reject(new Error('in vain')))).rejects.toThrow('in vain')

  expect(await run(1, work)).toBe('done')
})

it('skips optional operations while no place is free', async () => {
  const { runIfFree, finish, running } = openFull()
  const done: string[] = []
  await runIfFree(1, async () => void done.push('of a user at the own limit'))
  await runIfFree(3, async () => void done.push('of a user without operations'))
  expect(done).toEqual([])

  finish[2]?.()
  await running[2]
  await runIfFree(3, async () => void done.push('after one has ended'))
  expect(done).toEqual(['after one has ended'])
})

describe('with a queue', () => {
  const QUEUE = { total: 4, perKey: 2, withinMs: 60_000 }

  /** All places are in use, and one operation of each of these users is queued. */
  function openFullWith(userIds: readonly number[], queue = QUEUE) {
    const limit = openFull(queue)
    const order: string[] = []
    const queued = userIds.map((userId, index) =>
      limit.run(userId, async () => void order.push(`${userId}, number ${index + 1}`)),
    )
    return { ...limit, order, queued, all: () => Promise.all(queued) }
  }

  it('starts queued operations one after the other as soon as a place is free', async () => {
    const { finish, order, all } = openFullWith([1, 1])
    expect(order).toEqual([])

    finish[0]?.()

    await all()
    expect(order).toEqual(['1, number 1', '1, number 2'])
  })

  it('does not let a new operation overtake a queued one', async () => {
    const { finish, running, order, all, run } = openFullWith([1])
    finish[0]?.()
    await running[0]
    await Promise.all([all(), run(1, async () => void order.push('late'))])

    expect(order).toEqual(['1, number 1', 'late'])
  })

  it('prefers the user with the fewest running operations, however many others are queued', async () => {
    const { finish, order, all } = openFullWith([2, 2, 3])

    finish[0]?.()

    await all()
    expect(order).toEqual(['3, number 3', '2, number 1', '2, number 2'])
  })

  it('limits the queued operations of one user and in total', async () => {
    const { finish, run, all } = openFullWith([1, 1])

    await expect(run(1, work)).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    const others = [run(3, work), run(4, work)]
    await expect(run(5, work)).rejects.toMatchObject({ status: 503 })

    finish[0]?.()
    await all()
    expect(await Promise.all(others)).toEqual(['done', 'done'])
  })

  it('rejects operations that have waited too long', async () => {
    const { queued, finish, running, run } = openFullWith([1, 3], { ...QUEUE, withinMs: 1 })

    await expect(queued[0]).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    await expect(queued[1]).rejects.toMatchObject({ status: 503 })

    finish[0]?.()
    await running[0]
    expect(await run(1, work)).toBe('done')
  })

  it('frees the queue place of a client that disconnects', async () => {
    const { finish, run, order } = openFullWith([1])
    const client = new AbortController()
    const abandoned = run(1, async () => void order.push('abandoned'), client.signal)
    await expect(run(1, work)).rejects.toMatchObject({ status: 429 })

    client.abort()

    await expect(abandoned).rejects.toMatchObject({ status: 429 })
    await expect(run(1, work, client.signal)).rejects.toMatchObject({ status: 429 })
    const other = run(1, work)
    finish[0]?.()
    expect(await other).toBe('done')
    expect(order).toEqual(['1, number 1'])
  })

  it('does not queue optional operations', async () => {
    const { runIfFree, order } = openFullWith([])

    await runIfFree(1, async () => void order.push('optional'))

    expect(order).toEqual([])
  })
})
