import { expect, it } from 'vitest'
import { openFreeThreads } from '../../workers/threads/free-threads.js'

const never = new AbortController().signal

it('tasks take a thread in the order of their due times, and of their addition if those are equal', async () => {
  const threads = openFreeThreads(1)
  const order: string[] = []
  await threads.take(0, never)
  const taken = ['late 30', 'early 10', 'also early 10', 'middle 20'].map(async (name) => {
    await threads.take(Number(name.split(' ').at(-1)), never)
    order.push(name)
    threads.giveBack()
  })
  expect(threads.waiting).toBe(4)

  threads.giveBack()
  await Promise.all(taken)
  expect(order).toEqual(['early 10', 'also early 10', 'middle 20', 'late 30'])
  expect(threads.waiting).toBe(0)
})

it('all threads are free again after their tasks', async () => {
  const threads = openFreeThreads(2)
  for (let task = 0; task < 2; task += 1) await threads.take(0, never)
  const third = threads.take(0, never)
  expect(threads.waiting).toBe(1)

  for (let task = 0; task < 3; task += 1) threads.giveBack()
  await third
  for (let task = 0; task < 2; task += 1) await threads.take(0, never)
  void threads.take(0, never)
  expect(threads.waiting).toBe(1)
})

it('a task that is aborted while it waits takes no thread', async () => {
  const threads = openFreeThreads(1)
  await threads.take(0, never)
  const abort = new AbortController()
  const aborted = threads.take(1, abort.signal)
  const next = threads.take(2, never)
  abort.abort(new Error('too late'))

  await expect(aborted).rejects.toThrow('too late')
  expect(threads.waiting).toBe(1)
  threads.giveBack()
  await next
})
