import { afterAll, beforeAll, expect, it } from 'vitest'
import { type PodUnderFaults, startAssailedPod } from './pod-under-faults.js'
import { openRide } from './scenario-run.js'
import { store } from './this-run.js'

const MEGABYTE = 2 ** 20
/** Allowance for caches of the people of a load and for optimised code. */
const MAY_KEEP = 8 * MEGABYTE
const MAY_TAKE = 400 * MEGABYTE
const BACKLOG = 2_000

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startAssailedPod({ store: store(), hooked: () => ({ hooks: ['measured-heap'] }) })
})
afterAll(() => podUnderFaults?.close())

interface Memory {
  /** In bytes, after garbage collection. */
  readonly kept: number
  readonly rss: number
}

async function measure(): Promise<readonly Memory[]> {
  return Promise.all(
    [...podUnderFaults.processes.web, ...podUnderFaults.processes.worker].map(async (process) => {
      const answer = process.nextMessage()
      process.send({ measure: true })
      return (await answer) as Memory // as the hook sends it
    }),
  )
}

it('F25: load is sustained, and a backlog builds up', async () => {
  const ride = openRide(podUnderFaults)
  const wrongs: string[] = []
  const measured: (readonly Memory[])[] = []
  for (const messages of [600, 2_000]) {
    const load = { messages, perSecond: 100, writesPerSecond: 2 }
    wrongs.push(...(await ride.under(load, (progress) => progress.untilAccepted(1))).wrongs)
    measured.push(await measure())
  }
  const { wrongs: ofBacklog } = await ride.under({ messages: BACKLOG, perSecond: 1_000 }, async (progress) => {
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
    await progress.untilAccepted(1)
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
  })
  measured.push(await measure())

  expect([...wrongs, ...ofBacklog]).toEqual([])
  const [warm = [], ...later] = measured
  for (const memories of later) {
    const grown = memories.map(({ kept }, index) => kept - (warm[index]?.kept ?? 0))
    expect(grown.filter((bytes) => bytes > MAY_KEEP)).toEqual([])
    expect(memories.map(({ rss }) => rss).filter((bytes) => bytes > MAY_TAKE)).toEqual([])
  }
})
