import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { QUEUES } from '../../../src/jobs/queues/queue-names.js'
import { until } from '../../soak/until.js'
import { type PodUnderFaults, type ProcessKind, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario, type Scenario } from './scenario-run.js'
import { expectUnaffected, postInbound, statusesIn, type TimedResponse } from './senders.js'
import { chance, store } from './this-run.js'

/** Restarts of the whole pod, process by process. */
const ROUNDS = 10
/** Minimum number of restarts. It is low, because a busy machine restarts slowly. */
const MIN_RESTARTS = 2
const RESTARTING_MS = 120_000

let podUnderFaults: PodUnderFaults
let scenario: Scenario
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({
    store: store(),
    hooksOf: (kind) => (kind === 'web' ? { hooks: ['killed-hand-over'] } : undefined),
  })
  scenario = openScenario(podUnderFaults)
})
afterAll(() => podUnderFaults?.close())

async function stopInOrder(kind: ProcessKind, index: number): Promise<number | null | undefined> {
  const process = podUnderFaults.processes[kind][index]
  process?.signal('SIGTERM')
  return (await process?.ended)?.code
}

it('F02: web processes are killed at random moments, after an acknowledgement and after a commit', async () => {
  const random = chance()
  const moments = ['acknowledged', 'committed'] // times at which the hook kills the process
  const load = { messages: 600, perSecond: 50, writesPerSecond: 20 }
  const { violations, responses } = await scenario.run(load, async (progress) => {
    await progress.untilAccepted(0.1)
    for (const [turn, killAfter] of [...moments, ...moments].entries()) {
      const victim = podUnderFaults.processes.web[turn % 2]
      victim?.send({ killAfter })
      let hasEnded = false
      void victim?.ended.then(() => {
        hasEnded = true
      })
      // A write is always in progress; a busy process may not have read its instruction yet.
      await until('the process is killed', 120_000, async () => {
        if (!hasEnded && killAfter === 'acknowledged') {
          await postInbound(podUnderFaults, '/receive/public', 'no envelope', victim?.base)
        }
        return hasEnded
      })
      expect((await victim?.ended)?.signal).toBe('SIGKILL')
      await podUnderFaults.replace('web', turn % 2)
      await pause(random() * 1_000)
      await podUnderFaults.killAndReplace('web', 1 - (turn % 2))
    }
  })

  expect(violations).toEqual([])
  expect(statusesIn(responses)).toContain('none') // a request was in progress, or was sent too late
})

it('F05: a web process is frozen', async () => {
  let [from, back] = [0, 0]
  const load = { messages: 300, perSecond: 30, writesPerSecond: 4 }
  const { violations, responses, writes } = await scenario.run(load, async (progress) => {
    await progress.untilAccepted(0.2)
    podUnderFaults.processes.web[0]?.signal('SIGSTOP')
    from = Date.now()
    await pause(30_000)
    podUnderFaults.processes.web[0]?.signal('SIGCONT')
    back = Date.now()
    await progress.untilAccepted(1)
  })

  expect(violations).toEqual([])
  // Requests to the frozen process get no response; the other process responds.
  const isDuringFault = ({ at }: TimedResponse) => at > from && at < back
  expect(statusesIn(responses.filter(isDuringFault))).toContain(202)
  expectUnaffected(responses.filter((response) => isDuringFault(response) && typeof response.status === 'number'))
  expectUnaffected(responses.filter(({ at }) => at > back))
  expectUnaffected(writes.filter(({ at }) => at > back))
})

it('F27: every process receives a stop signal', async () => {
  const codes: unknown[] = []
  const active: number[] = []
  const load = { messages: 300, perSecond: 50, writesPerSecond: 2 }
  const { violations, responses } = await scenario.run(load, async (progress) => {
    await progress.untilAccepted(0.2)
    codes.push(...(await Promise.all([stopInOrder('worker', 0), stopInOrder('worker', 1)])))
    for (const queue of QUEUES) active.push((await podUnderFaults.pod.jobs.counts(queue)).active)
    await Promise.all([podUnderFaults.replace('worker', 0), podUnderFaults.replace('worker', 1)])
    await progress.untilAccepted(0.5)
    codes.push(await stopInOrder('web', 0))
    await podUnderFaults.replace('web', 0)
    codes.push(await stopInOrder('web', 1))
    await podUnderFaults.replace('web', 1)
  })

  expect(violations).toEqual([])
  expect(codes).toEqual([0, 0, 0, 0])
  expect(active).toEqual(QUEUES.map(() => 0))
  expect(statusesIn(responses)).not.toContain('late')
})

it('F28: the processes of each kind are restarted one after the other', async () => {
  const codes: unknown[] = []
  const load = { messages: 1_500, perSecond: 30, writesPerSecond: 5, clientsRetry: true }
  const { violations, responses, writes } = await scenario.run(load, async () => {
    const end = Date.now() + RESTARTING_MS
    for (let turn = 0; turn < 2 * ROUNDS && Date.now() < end; turn += 1) {
      const kinds = ['web', 'worker'] as const
      codes.push(...(await Promise.all(kinds.map((kind) => stopInOrder(kind, turn % 2)))))
      await Promise.all(kinds.map((kind) => podUnderFaults.replace(kind, turn % 2)))
    }
  })

  expect(violations).toEqual([])
  expect(codes).toEqual(codes.map(() => 0))
  expect(codes.length).toBeGreaterThanOrEqual(4 * MIN_RESTARTS)
  expect(statusesIn(writes)).toEqual([200])
  // Other pods repeat their deliveries.
  const expected: readonly unknown[] = [202, 503, 'none']
  expect(statusesIn(responses).filter((status) => !expected.includes(status))).toEqual([])
})
