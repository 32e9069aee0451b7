import { beforeEach, describe, expect, it, vi } from 'vitest'
import { groupCommit } from '../../src/concurrency/group-commit.js'
import { type GroupGrowth, openGroupGrowth } from '../../src/concurrency/group-growth.js'

/** Groups that the test ends. */
function openGroups(limits: Partial<Parameters<typeof groupCommit<string, string>>[0]> = {}, growth?: GroupGrowth) {
  const groups: { readonly items: readonly string[]; end(): void; fail(error: Error): void }[] = []
  const bring = groupCommit<string, string>(
    { maxConcurrent: 2, maxItems: 3, maxSize: 100, sizeOf: (item) => item.length, ...limits },
    (items) =>
      new Promise((resolve, reject) => {
        groups.push({ items, end: () => resolve(`done with ${items.join()}`), fail: reject })
      }),
    growth,
  )
  return { groups, bring }
}

const aTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('group commit', () => {
  it('runs a single caller at once, alone', async () => {
    const { groups, bring } = openGroups()
    const answer = bring(['a'])
    await aTurn()

    groups[0]?.end()

    expect(await answer).toBe('done with a')
  })

  it('puts concurrent callers into one group, and returns to each its own result', async () => {
    const { groups, bring } = openGroups()
    const answers = Promise.all([bring(['a']), bring(['b'])])
    await aTurn()

    expect(groups.map(({ items }) => items)).toEqual([['a', 'b']])
    groups[0]?.end()

    expect(await answers).toEqual(['done with a,b', 'done with a,b'])
  })

  it('limits the number of concurrent groups; later callers form the next group', async () => {
    const { groups, bring } = openGroups()
    const answers = []
    for (const item of ['a', 'b', 'c', 'd', 'e', 'f']) {
      answers.push(bring([item]))
      await aTurn()
    }
    expect(groups.map(({ items }) => items)).toEqual([['a'], ['b']])

    groups[0]?.end()
    await answers[0]
    await aTurn()
    groups[1]?.end()
    await answers[1]
    await aTurn()

    expect(groups.slice(2).map(({ items }) => items)).toEqual([['c', 'd', 'e'], ['f']])
  })

  it('starts another group beside a slow one for any number of items', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    try {
      const { groups, bring } = openGroups({ minItems: 3, slowMs: 200 })
      void bring(['slow'])
      await aTurn()
      void bring(['a'])
      await aTurn()
      vi.advanceTimersByTime(199)
      expect(groups.map(({ items }) => items)).toEqual([['slow']])

      vi.advanceTimersByTime(1)

      expect(groups.map(({ items }) => items)).toEqual([['slow'], ['a']])
    } finally {
      vi.useRealTimers()
    }
  })

  it('starts another group beside a fast one only with the minimum number of items, and otherwise waits for its end', async () => {
    const { groups, bring } = openGroups({ maxItems: 9, maxConcurrent: 3, minItems: 3 })
    const answers = []
    for (const item of ['a', 'b', 'c']) {
      answers.push(bring([item]))
      await aTurn()
    }
    expect(groups.map(({ items }) => items)).toEqual([['a']])

    answers.push(bring(['d']))
    await aTurn()
    expect(groups.map(({ items }) => items)).toEqual([['a'], ['b', 'c', 'd']])

    answers.push(bring(['e']))
    await aTurn()
    groups[1]?.end()
    await answers[1]
    await aTurn()
    expect(groups).toHaveLength(2) // the first is still running

    groups[0]?.end()
    await answers[0]
    await aTurn()
    expect(groups.slice(2).map(({ items }) => items)).toEqual([['e']])
    groups[2]?.end()
    expect(await Promise.all(answers)).toHaveLength(5)
  })

  it('limits the size of a group, but never splits the items of one caller', async () => {
    const { groups, bring } = openGroups({ maxConcurrent: 9 })
    const large = 'x'.repeat(1_000)
    for (const items of [['a', 'b'], ['c', 'd'], [large], ['e'], ['1', '2', '3', '4']]) void bring(items)
    await aTurn()

    expect(groups.map(({ items }) => items)).toEqual([['a', 'b'], ['c', 'd'], [large], ['e'], ['1', '2', '3', '4']])
  })

  it('rejects all callers of a group that failed, and continues with the others', async () => {
    const { groups, bring } = openGroups({ maxConcurrent: 1 })
    const lost = Promise.allSettled([bring(['a']), bring(['b'])])
    await aTurn()
    const next = bring(['c'])

    groups[0]?.fail(new Error('away'))

    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await aTurn()
    groups[1]?.end()
    expect(await next).toBe('done with c')
  })

  it('rejects a caller that has waited too long, queued or in a group, and runs nothing for a rejected caller', async () => {
    const { groups, bring } = openGroups({
      maxConcurrent: 1,
      timeLimit: { ms: 20, error: () => new Error('too late') },
    })
    const first = bring(['a'])
    await aTurn()
    const second = bring(['b'])

    await expect(first).rejects.toThrow('too late')
    await expect(second).rejects.toThrow('too late')

    groups[0]?.end()
    await aTurn()
    const third = bring(['c'])
    await aTurn()
    expect(groups.map(({ items }) => items)).toEqual([['a'], ['c']])
    groups[1]?.end()
    expect(await third).toBe('done with c')
  })
})

describe('group commit for a busy caller', () => {
  const growth = {
    loads: [
      { items: 2, ms: 5, pauseMs: 1, waitMs: 3 },
      { items: 3, ms: 20, pauseMs: 4, waitMs: 12 },
    ],
    startItems: 5,
  }
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
    return () => vi.useRealTimers()
  })

  /** Finishes a group of this size after this many milliseconds. */
  async function afterGroup(size: number, milliseconds: number) {
    const { groups, bring } = openGroups({ maxItems: 9 }, openGroupGrowth(growth))
    const answers = Promise.all(Array.from({ length: size }, () => bring(['first'])))
    await aTurn()
    await vi.advanceTimersByTimeAsync(milliseconds)
    groups[0]?.end()
    await answers
    return { bring, later: () => groups.slice(1).map(({ items }) => items.length) }
  }

  async function comes(bring: (items: string[]) => Promise<unknown>): Promise<void> {
    void bring(['a'])
    await aTurn()
  }

  it('waits until the group is large enough', async () => {
    const { bring, later } = await afterGroup(2, 5)
    for (let comer = 1; comer <= 4; comer += 1) await comes(bring)
    expect(later()).toEqual([])

    await comes(bring)
    expect(later()).toEqual([5])
  })

  it('waits while callers keep arriving, and a millisecond more', async () => {
    const { bring, later } = await afterGroup(2, 5)
    await comes(bring)
    await vi.advanceTimersByTimeAsync(0.5)
    await comes(bring)
    await vi.advanceTimersByTimeAsync(0.5)
    expect(later()).toEqual([])

    await vi.advanceTimersByTimeAsync(1)
    expect(later()).toEqual([2])
  })

  it('waits longer after a group that was both larger and slower', async () => {
    const { bring, later } = await afterGroup(3, 20)
    await comes(bring)
    await vi.advanceTimersByTimeAsync(3)
    await comes(bring)
    await vi.advanceTimersByTimeAsync(4)
    expect(later()).toEqual([])

    await vi.advanceTimersByTimeAsync(5)
    expect(later()).toEqual([2])
  })

  it('waits no longer than the limit', async () => {
    const { bring, later } = await afterGroup(2, 5)
    await comes(bring)
    await vi.advanceTimersByTimeAsync(0.5)
    for (let comer = 2; comer <= 4; comer += 1) {
      expect(later()).toEqual([])
      await comes(bring)
      await vi.advanceTimersByTimeAsync(1)
    }
    expect(later()).toEqual([4])
  })

  it.each([
    ['was small', 1, 9],
    ['was quick', 3, 4],
  ])('waits for no other caller when the last group %s', async (_, size, milliseconds) => {
    const { bring, later } = await afterGroup(size, milliseconds)
    await comes(bring)
    expect(later()).toEqual([1])
  })

  it('stops waiting after the next small group', async () => {
    const { bring, later } = await afterGroup(2, 5)
    await comes(bring)
    await vi.advanceTimersByTimeAsync(2)
    expect(later()).toEqual([1])

    await comes(bring) // the previous group is still running, and one item is enough beside it
    expect(later()).toEqual([1, 1])
  })
})
