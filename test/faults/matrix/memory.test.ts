import { afterAll, beforeAll, expect, it } from 'vitest'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario } from './scenario-run.js'
import { store } from './this-run.js'

const MEGABYTE = 2 ** 20
/** Tolerated growth for caches and optimised code. */
const MAX_GROWTH_BYTES = 8 * MEGABYTE
const MAX_RSS_BYTES = 400 * MEGABYTE
const BACKLOG = 2_000

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store(), hooksOf: () => ({ hooks: ['measured-heap'] }) })
})
afterAll(() => podUnderFaults?.close())

interface Memory {
  /** Bytes after garbage collection. */
  readonly kept: number
  readonly rss: number
}

async function measure(): Promise<readonly Memory[]> {
  return Promise.all(
    [...podUnderFaults.processes.web, ...podUnderFaults.processes.worker].map(async (process) => {
      const reply = process.nextMessage()
      process.send({ measure: true })
      return (await reply) as Memory // as the hook sends it
    }),
  )
}

it('F25: load is sustained, and a backlog builds up', async () => {
  const scenario = openScenario(podUnderFaults)
  const violations: string[] = []
  const measurements: (readonly Memory[])[] = []
  for (const messages of [600, 2_000]) {
    const load = { messages, perSecond: 100, writesPerSecond: 2 }
    violations.push(...(await scenario.run(load, (progress) => progress.untilAccepted(1))).violations)
    measurements.push(await measure())
  }
  const { violations: backlogViolations } = await scenario.run(
    { messages: BACKLOG, perSecond: 1_000 },
    async (progress) => {
      for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
      await progress.untilAccepted(1)
      for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
    },
  )
  measurements.push(await measure())

  expect([...violations, ...backlogViolations]).toEqual([])
  const [warm = [], ...later] = measurements
  for (const memories of later) {
    const grown = memories.map(({ kept }, index) => kept - (warm[index]?.kept ?? 0))
    expect(grown.filter((bytes) => bytes > MAX_GROWTH_BYTES)).toEqual([])
    expect(memories.map(({ rss }) => rss).filter((bytes) => bytes > MAX_RSS_BYTES)).toEqual([])
  }
})
