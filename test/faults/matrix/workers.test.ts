import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type PodUnderFaults, startAssailedPod } from './pod-under-faults.js'
import { openRide, type Ride } from './scenario-run.js'
import { chance, store } from './this-run.js'

const KILLS = 20
/** The minimum is low, because a busy machine reaches fewer of them. */
const FEW = 6
const KILLING_MS = 90_000

let podUnderFaults: PodUnderFaults
let ride: Ride
beforeAll(async () => {
  podUnderFaults = await startAssailedPod({ store: store() })
  ride = openRide(podUnderFaults)
})
afterAll(() => podUnderFaults?.close())

it('F01: workers are killed twenty times, at random moments', async () => {
  const random = chance()
  const end = Date.now() + KILLING_MS
  let killed = 0
  const load = { messages: 1_500, perSecond: 50, writesPerSecond: 2 }
  const { wrongs } = await ride.under(load, async () => {
    async function killAgainAndAgain(index: number): Promise<void> {
      while (killed < KILLS && Date.now() < end) {
        killed += 1
        await pause(random() * 1_500)
        await podUnderFaults.killAndReplace('worker', index)
      }
    }
    await Promise.all([killAgainAndAgain(0), killAgainAndAgain(1)])
  })

  expect(wrongs).toEqual([])
  expect(killed).toBeGreaterThanOrEqual(FEW)
})
