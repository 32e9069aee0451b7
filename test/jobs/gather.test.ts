import { describe, expect, it } from 'vitest'
import { gather } from '../../src/jobs/gather.js'

/** Groups that end when the test says so. */
function openGroups(limits: Partial<Parameters<typeof gather<string, string>>[0]> = {}) {
  const groups: { readonly items: readonly string[]; end(): void; fail(error: Error): void }[] = []
  const bring = gather<string, string>(
    { atOnce: 2, items: 3, bytes: 100, sizeOf: (item) => item.length, ...limits },
    (items) =>
      new Promise((resolve, reject) => {
        groups.push({ items, end: () => resolve(`done with ${items.join()}`), fail: reject })
      }),
  )
  return { groups, bring }
}

const aTurn = () => new Promise((resolve) => setImmediate(resolve))

describe('gathering', () => {
  it('lets a lone caller go at once, alone', async () => {
    const { groups, bring } = openGroups()
    const answer = bring(['a'])
    await aTurn()

    groups[0]?.end()

    expect(await answer).toBe('done with a')
  })

  it('puts callers of one moment into one group, and tells each of them how it went', async () => {
    const { groups, bring } = openGroups()
    const answers = Promise.all([bring(['a']), bring(['b'])])
    await aTurn()

    expect(groups.map(({ items }) => items)).toEqual([['a', 'b']])
    groups[0]?.end()

    expect(await answers).toEqual(['done with a,b', 'done with a,b'])
  })

  it('has only so many groups under way; who comes meanwhile is in the next one', async () => {
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

  it('begins another one beside it only with enough to be worth it, and else waits for its end', async () => {
    const { groups, bring } = openGroups({ items: 9, atOnce: 3, enough: 3 })
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
    expect(groups).toHaveLength(2) // the first is still under way

    groups[0]?.end()
    await answers[0]
    await aTurn()
    expect(groups.slice(2).map(({ items }) => items)).toEqual([['e']])
    groups[2]?.end()
    expect(await Promise.all(answers)).toHaveLength(5)
  })

  it('makes no group larger than it may be, but never splits what one caller has brought', async () => {
    const { groups, bring } = openGroups({ atOnce: 9 })
    const large = 'x'.repeat(1_000)
    for (const items of [['a', 'b'], ['c', 'd'], [large], ['e'], ['1', '2', '3', '4']]) void bring(items)
    await aTurn()

    expect(groups.map(({ items }) => items)).toEqual([['a', 'b'], ['c', 'd'], [large], ['e'], ['1', '2', '3', '4']])
  })

  it('tells all callers of a group that failed, and goes on with the others', async () => {
    const { groups, bring } = openGroups({ atOnce: 1 })
    const lost = Promise.allSettled([bring(['a']), bring(['b'])])
    await aTurn()
    const next = bring(['c'])

    groups[0]?.fail(new Error('away'))

    expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    await aTurn()
    groups[1]?.end()
    expect(await next).toBe('done with c')
  })

  it('sends away who has waited too long, in the line as in a group, and does nothing for who has gone', async () => {
    const { groups, bring } = openGroups({ atOnce: 1, patience: { ms: 20, error: () => new Error('too late') } })
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
