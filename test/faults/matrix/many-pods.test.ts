import { expect, it } from 'vitest'
import { runDeadPods } from '../../soak/dead-pods.js'
import { runFanOut } from '../../soak/fan-out.js'
import { store } from './this-run.js'

/** The guaranteed latency. One post in twenty may take longer on a busy machine. */
const MAX_P95_MS = 2_000
const POSTS = 21

it('F19: two hundred other pods do not answer, and one does', async () => {
  const { violations, p95 } = await runDeadPods({
    store: store(),
    silent: 150,
    refusing: 40,
    failing: 10,
    posts: POSTS,
    threads: true,
    withinMs: 180_000,
  })

  expect(violations).toEqual([])
  expect(p95).toBeLessThan(MAX_P95_MS)
})

it('F01: workers that deliver are killed one after the other', async () => {
  const { violations, killed } = await runFanOut({
    store: store(),
    pods: 40,
    posts: 5,
    killIntervalMs: 1_500,
    threads: false,
    withinMs: 180_000,
  })

  expect(violations).toEqual([])
  expect(killed).toBeGreaterThan(0)
})
