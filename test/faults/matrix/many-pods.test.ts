import { expect, it } from 'vitest'
import { runDeadPods } from '../../soak/dead-pods.js'
import { runFanOut } from '../../soak/fan-out.js'
import { store } from './this-run.js'

/** The guarantee. One post in twenty may take longer, because the machine may be busy. */
const PROMPT_MS = 2_000
const POSTS = 21

it('F19: two hundred other pods are dead, and one is healthy', async () => {
  const { wrongs, p95 } = await runDeadPods({
    store: store(),
    silent: 150,
    refusing: 40,
    failing: 10,
    posts: POSTS,
    threads: true,
    withinMs: 180_000,
  })

  expect(wrongs).toEqual([])
  expect(p95).toBeLessThan(PROMPT_MS)
})

it('F01: workers that deliver are killed one after the other', async () => {
  const { wrongs, killed } = await runFanOut({
    store: store(),
    pods: 40,
    posts: 5,
    killIntervalMs: 1_500,
    threads: false,
    withinMs: 180_000,
  })

  expect(wrongs).toEqual([])
  expect(killed).toBeGreaterThan(0)
})
