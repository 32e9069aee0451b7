import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario, type Scenario } from './scenario-run.js'
import { chance, store } from './this-run.js'

const KILLS = 20
/** Minimum number of kills. It is low, because a busy machine restarts workers slowly. */
const MIN_KILLS = 6
const KILLING_MS = 90_000

let podUnderFaults: PodUnderFaults
let scenario: Scenario
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
  scenario = openScenario(podUnderFaults)
})
afterAll(() => podUnderFaults?.close())

it('F01: workers are killed twenty times, at random moments', async () => {
  const random = chance()
  const end = Date.now() + KILLING_MS
  let killed = 0
  const load = { messages: 1_500, perSecond: 50, writesPerSecond: 2 }
  const { violations } = await scenario.run(load, async () => {
    async function killRepeatedly(index: number): Promise<void> {
      while (killed < KILLS && Date.now() < end) {
        killed += 1
        await pause(random() * 1_500)
        await podUnderFaults.killAndReplace('worker', index)
      }
    }
    await Promise.all([killRepeatedly(0), killRepeatedly(1)])
  })

  expect(violations).toEqual([])
  expect(killed).toBeGreaterThanOrEqual(MIN_KILLS)
})
