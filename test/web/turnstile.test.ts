import { expect, it } from 'vitest'
import { openTurnstile } from '../../src/web/turnstile.js'

const openFull = () => {
  const turnstile = openTurnstile({ all: 3, each: 2 })
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
  const { pass } = openTurnstile({ all: 1, each: 1 })
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
