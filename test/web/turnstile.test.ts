import { describe, expect, it } from 'vitest'
import { openTurnstile } from '../../src/web/limits/concurrency-limit.js'

type Line = Parameters<typeof openTurnstile>[0]['line']

const openFull = (line?: Line) => {
  const turnstile = openTurnstile({ limit: 'searches', all: 3, each: 2, ...(line && { line }) })
  const leave: (() => void)[] = []
  const stay = (userId: number) => turnstile.pass(userId, () => new Promise<void>((resolve) => leave.push(resolve)))
  return { ...turnstile, stay, leave, inside: [stay(1), stay(1), stay(2)] }
}
const work = async () => 'done'

it('lets one user in a few times at once, all of them together as often as there is room, and others when somebody leaves', async () => {
  const { pass, stay, leave, inside } = openFull()

  await expect(pass(1, work)).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
  await expect(pass(3, work)).rejects.toMatchObject({ status: 503 })

  leave[0]?.()
  await inside[0]
  const other = stay(3)
  await expect(pass(1, work)).rejects.toMatchObject({ status: 503 })
  leave[3]?.()
  await other
  expect(await pass(1, work)).toBe('done')
})

it('lets somebody else in after what was done inside has failed', async () => {
  const { pass } = openTurnstile({ limit: 'searches', all: 1, each: 1 })
  await expect(pass(1, () => Promise.reject(new Error('in vain')))).rejects.toThrow('in vain')

  expect(await pass(1, work)).toBe('done')
})

it('leaves out what there is no room for', async () => {
  const { passIfRoom, leave, inside } = openFull()
  const done: string[] = []
  await passIfRoom(1, async () => void done.push('by one who is inside twice'))
  await passIfRoom(3, async () => void done.push('by one more'))
  expect(done).toEqual([])

  leave[2]?.()
  await inside[2]
  await passIfRoom(3, async () => void done.push('when somebody has left'))
  expect(done).toEqual(['when somebody has left'])
})

describe('with a line in front of it', () => {
  const LINE = { all: 4, each: 2, withinMs: 60_000 }

  /** Full of people, with some of them in line, who stay once they are in. */
  function openFullWith(waiting: readonly number[], line = LINE) {
    const turnstile = openFull(line)
    const came: string[] = []
    const turns = waiting.map((userId, index) =>
      turnstile.pass(userId, async () => void came.push(`${userId}, number ${index + 1}`)),
    )
    return { ...turnstile, came, turns, all: () => Promise.all(turns) }
  }

  it('lets those in who wait, one after the other, as soon as somebody has left', async () => {
    const { leave, came, all } = openFullWith([1, 1])
    expect(came).toEqual([])

    leave[0]?.()

    await all()
    expect(came).toEqual(['1, number 1', '1, number 2'])
  })

  it('has nobody overtaken by one who comes at the very moment', async () => {
    const { leave, inside, came, all, pass } = openFullWith([1])
    leave[0]?.()
    await inside[0]
    await Promise.all([all(), pass(1, async () => void came.push('late'))])

    expect(came).toEqual(['1, number 1', 'late'])
  })

  it('lets those in first who have less inside, however long the line of others is', async () => {
    const { leave, came, all } = openFullWith([2, 2, 3])

    leave[0]?.()

    await all()
    expect(came).toEqual(['3, number 3', '2, number 1', '2, number 2'])
  })

  it('has room for a few of one user, and for so many in all', async () => {
    const { leave, pass, all } = openFullWith([1, 1])

    await expect(pass(1, work)).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    const others = [pass(3, work), pass(4, work)]
    await expect(pass(5, work)).rejects.toMatchObject({ status: 503 })

    leave[0]?.()
    await all()
    expect(await Promise.all(others)).toEqual(['done', 'done'])
  })

  it('sends those away who have waited too long', async () => {
    const { turns, leave, inside, pass } = openFullWith([1, 3], { ...LINE, withinMs: 1 })

    await expect(turns[0]).rejects.toMatchObject({ status: 429, headers: { 'retry-after': '1' } })
    await expect(turns[1]).rejects.toMatchObject({ status: 503 })

    leave[0]?.()
    await inside[0]
    expect(await pass(1, work)).toBe('done')
  })

  it('has a place again for each who is gone', async () => {
    const { leave, pass, came } = openFullWith([1])
    const client = new AbortController()
    const gone = pass(1, async () => void came.push('nobody'), client.signal)
    await expect(pass(1, work)).rejects.toMatchObject({ status: 429 })

    client.abort()

    await expect(gone).rejects.toMatchObject({ status: 429 })
    await expect(pass(1, work, client.signal)).rejects.toMatchObject({ status: 429 })
    const other = pass(1, work)
    leave[0]?.()
    expect(await other).toBe('done')
    expect(came).toEqual(['1, number 1'])
  })

  it('is for those only who have to be inside', async () => {
    const { passIfRoom, came } = openFullWith([])

    await passIfRoom(1, async () => void came.push('by one who can do without'))

    expect(came).toEqual([])
  })
})
