import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario, type Scenario } from './scenario-run.js'
import { statusesIn } from './senders.js'
import { chance, store } from './this-run.js'

const LOAD = { messages: 400, perSecond: 50, writesPerSecond: 4 }
/** The statuses allowed for clients and for other pods while the database is unavailable. */
const EXPECTED: readonly unknown[] = [200, 202, 503]

const FATAL = 60

let podUnderFaults: PodUnderFaults
let scenario: Scenario
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
  scenario = openScenario(podUnderFaults)
})
afterAll(() => podUnderFaults?.close())

/** Log lines of processes before they crashed. */
const fatalLogLines = () =>
  podUnderFaults.logLines().flatMap((line) => (line['level'] === FATAL ? JSON.stringify(line) : []))

it('F12: PostgreSQL crashes five times', async () => {
  const random = chance()
  const { violations, responses, writes } = await scenario.run(LOAD, async (progress) => {
    for (const share of [0.1, 0.25, 0.4, 0.55, 0.7]) {
      await progress.untilAccepted(share)
      await pause(random() * 500)
      await podUnderFaults.database.crash()
    }
  })

  expect(violations).toEqual([])
  expect(statusesIn([...responses, ...writes]).filter((status) => !EXPECTED.includes(status))).toEqual([])
  expect(fatalLogLines()).toEqual([])
})

it('F13: PostgreSQL is frozen', async () => {
  let [from, to] = [0, 0]
  const { violations, responses, writes } = await scenario.run(LOAD, async (progress) => {
    await progress.untilAccepted(0.3)
    podUnderFaults.database.signal('SIGSTOP')
    from = Date.now()
    await pause(30_000)
    to = Date.now()
    podUnderFaults.database.signal('SIGCONT')
    await until('the database is used again', 30_000, async () =>
      progress.writes.some(({ at, status }) => at > to && status === 200),
    )
  })

  expect(violations).toEqual([])
  expect(statusesIn([...responses, ...writes]).filter((status) => !EXPECTED.includes(status))).toEqual([])
  const duringFault = writes.filter(({ at, milliseconds }) => at > from && at + milliseconds < to)
  expect(statusesIn(duringFault)).toEqual([503])
  expect(duringFault.filter(({ retryAfter }) => retryAfter === null)).toEqual([])
  expect(fatalLogLines()).toEqual([])
})

it('F14: connections to PostgreSQL are cut, at random moments and directly after a commit', async () => {
  const { proxy } = podUnderFaults.database
  const load = { ...LOAD, writesPerSecond: 20 }
  const { violations, responses, writes } = await scenario.run(load, async (progress) => {
    for (let cut = 1; cut <= 15; cut += 1) {
      await progress.untilAccepted(cut / 20)
      if (cut % 3 === 0) {
        await proxy.refuse()
        await proxy.recover()
      } else await proxy.cutAfterRequest('COMMIT')
    }
  })

  expect(violations).toEqual([])
  expect(statusesIn([...responses, ...writes]).filter((status) => !EXPECTED.includes(status))).toEqual([])
  expect(fatalLogLines()).toEqual([])
})

it('F16: another program uses all connections of PostgreSQL', async () => {
  const connections: Client[] = []
  const { violations, responses, writes } = await scenario.run(LOAD, async (progress) => {
    const { proxy, directUrl } = podUnderFaults.database
    await progress.untilAccepted(0.2)
    await proxy.refuse()
    await until('no connection is left', 60_000, async () => {
      const more = await takeConnections(directUrl())
      connections.push(...more)
      return more.length === 0 && !(await hasPodConnections(connections[0]))
    })
    await proxy.recover()
    await until('a client was refused', 30_000, async () => progress.writes.some(({ status }) => status === 503))
    await Promise.all(connections.map((client) => client.end().catch(() => undefined)))
  })

  expect(violations).toEqual([])
  expect(statusesIn([...responses, ...writes]).filter((status) => !EXPECTED.includes(status))).toEqual([])
  expect(fatalLogLines()).toEqual([])
})

it('F35: all processes and stores are killed at once', async () => {
  const { database, redis, processes } = podUnderFaults
  const { violations } = await scenario.run(LOAD, async (progress) => {
    await progress.untilAccepted(0.5)
    await Promise.all([
      ...Object.values(processes).flatMap((each) => each.map((one) => one.kill())),
      database.kill(),
      redis?.kill(),
    ])
    await Promise.all([database.start(), redis?.start()])
    await Promise.all(
      (['web', 'worker'] as const).flatMap((kind) => [0, 1].map((index) => podUnderFaults.replace(kind, index))),
    )
  })

  expect(violations).toEqual([])
})

/** Whether the pod has connections. */
async function hasPodConnections(client: Client | undefined): Promise<boolean> {
  const found = await client?.query(`select from pg_stat_activity where application_name like 'pod %'`)
  return found?.rowCount !== 0
}

/** Opens connections until none is left. */
async function takeConnections(url: string): Promise<readonly Client[]> {
  const connections: Client[] = []
  for (;;) {
    const client = new Client({ connectionString: url })
    client.on('error', () => {})
    try {
      await client.connect()
    } catch {
      return connections
    }
    connections.push(client)
  }
}
