import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type AssailedPod, startAssailedPod } from './assailed-pod.js'
import { openRide, type Ride } from './ride.js'
import { chance, store } from './this-run.js'

/** Longer than a job is its worker's own, and than it takes the others to notice. */
const PAST_ITS_LOCK = 46_000
const KILLS = 20
/** A machine that does something else as well has fewer of them. */
const FEW = 6
const KILLING_MS = 90_000

let assailed: AssailedPod
let ride: Ride
beforeAll(async () => {
  assailed = await startAssailedPod({ store: store() })
  ride = openRide(assailed)
})
afterAll(() => assailed?.close())

it('F01: workers are killed twenty times, at any moment', async () => {
  const random = chance()
  const end = Date.now() + KILLING_MS
  let killed = 0
  const load = { messages: 1_500, perSecond: 50, writesPerSecond: 2 }
  const { wrongs } = await ride.under(load, async () => {
    async function killAgainAndAgain(index: number): Promise<void> {
      while (killed < KILLS && Date.now() < end) {
        killed += 1
        await pause(random() * 1_500)
        await assailed.killAndReplace('worker', index)
      }
    }
    await Promise.all([killAgainAndAgain(0), killAgainAndAgain(1)])
  })

  expect(wrongs).toEqual([])
  expect(killed).toBeGreaterThanOrEqual(FEW)
})

it('F04: a worker stands still for so long that others do its jobs', async () => {
  const { pod, processes } = assailed
  const isUnread = async () => (await pod.db('notifications').where({ read: false }).select('id')).length
  const { wrongs } = await ride.under({ messages: 200, perSecond: 50 }, async (progress) => {
    await progress.untilAccepted(0.3)
    processes.worker[0]?.signal('SIGSTOP')
    await Promise.all([progress.untilAccepted(1), pause(PAST_ITS_LOCK)])
    await assailed.settled()
    expect(await isUnread()).toBeGreaterThan(0)
    await pod.db('notifications').update({ read: true })
    processes.worker[0]?.signal('SIGCONT')
  })

  expect(wrongs).toEqual([])
  expect(await isUnread()).toBe(0)
})
