import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { openSmallDisk, type SmallDisk } from '../../support/files/small-disk.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario } from './scenario-run.js'
import { statusesIn } from './senders.js'
import { store } from './this-run.js'

/** Size of the disk. A new cluster uses a third of it; an unlimited WAL would use the rest. */
const MEGABYTES = 160
const FATAL = 60

let disk: SmallDisk | undefined
let podUnderFaults: PodUnderFaults | undefined
beforeAll(async () => {
  disk = await openSmallDisk(MEGABYTES, { apart: false })
  if (disk !== undefined)
    podUnderFaults = await startPodUnderFaults({ store: store(), folders: { database: disk.folder } })
})
afterAll(async () => {
  await podUnderFaults?.close()
  await disk?.close()
})

it('F15: the disk of PostgreSQL is full, until the server ends', async ({ skip }) => {
  if (disk === undefined || podUnderFaults === undefined)
    return skip('only root may mount a small file system for PostgreSQL')
  const { fill, clear } = disk
  const { database, logLines } = podUnderFaults
  const scenario = openScenario(podUnderFaults)
  const load = { messages: 300, perSecond: 20, writesPerSecond: 4 }
  const { violations, responses, writes } = await scenario.run(load, async (progress) => {
    await progress.untilAccepted(0.2)
    await fill()
    await until('a client is refused', 30_000, async () => progress.writes.some(({ status }) => status === 503))
    await pause(10_000)
    await clear()
    await database.kill()
    await database.start()
    await progress.untilAccepted(1)
  })

  expect(violations).toEqual([])
  const expected: readonly unknown[] = [200, 202, 503]
  expect(statusesIn([...responses, ...writes]).filter((status) => !expected.includes(status))).toEqual([])
  expect(logLines().filter(({ level }) => level === FATAL)).toEqual([])
})
