import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { QUEUES } from '../../../src/jobs/queues/queue-names.js'
import { until } from '../../soak/until.js'
import { type PodUnderFaults, type ProcessKind, startAssailedPod } from './pod-under-faults.js'
import { openRide, type Ride } from './scenario-run.js'
import { type Answer, askToReceive, expectUnaffected, statusesIn } from './senders.js'
import { chance, store } from './this-run.js'

/** Restarts of the whole pod, process by process. */
const ROUNDS = 10
/** The minimum is low, because a busy machine reaches fewer of them. */
const FEW = 2
const RESTARTING_MS = 120_000

let podUnderFaults: PodUnderFaults
let ride: Ride
beforeAll(async () => {
  podUnderFaults = await startAssailedPod({
    store: store(),
    hooked: (kind) => (kind === 'web' ? { hooks: ['mortal-hand-over'] } : undefined),
  })
  ride = openRide(podUnderFaults)
})
afterAll(() => podUnderFaults?.close())

async function stopInOrder(kind: ProcessKind, index: number): Promise<number | null | undefined> {
  const process = podUnderFaults.processes[kind][index]
  process?.signal('SIGTERM')
  return (await process?.ended)?.code
}

it('F02: web processes are killed at random moments, after an acknowledgement and after a commit', async () => {
  const random = chance()
  const moments = ['acknowledged', 'committed'] // when the hook kills the process
  const load = { messages: 600, perSecond: 50, writesPerSecond: 20 }
  const { wrongs, answers } = await ride.under(load, async (progress) => {
    await progress.untilAccepted(0.1)
    for (const [turn, dieWhen] of [...moments, ...moments].entries()) {
      const mortal = podUnderFaults.processes.web[turn % 2]
      mortal?.send({ dieWhen })
      let isDead = false
      void mortal?.ended.then(() => {
        isDead = true
      })
      // A write is always in progress; a busy process may not have read its instruction yet.
      await until('it dies of it', 120_000, async () => {
        if (!isDead && dieWhen === 'acknowledged') {
          await askToReceive(podUnderFaults, '/receive/public', 'no envelope', mortal?.base)
        }
        return isDead
      })
      expect((await mortal?.ended)?.signal).toBe('SIGKILL')
      await podUnderFaults.replace('web', turn % 2)
      await pause(random() * 1_000)
      await podUnderFaults.killAndReplace('web', 1 - (turn % 2))
    }
  })

  expect(wrongs).toEqual([])
  expect(statusesIn(answers)).toContain('none') // a request was in progress, or was sent too late
})

it('F05: a web process is frozen', async () => {
  let [from, back] = [0, 0]
  const load = { messages: 300, perSecond: 30, writesPerSecond: 4 }
  const { wrongs, answers, writes } = await ride.under(load, async (progress) => {
    await progress.untilAccepted(0.2)
    podUnderFaults.processes.web[0]?.signal('SIGSTOP')
    from = Date.now()
    await pause(30_000)
    podUnderFaults.processes.web[0]?.signal('SIGCONT')
    back = Date.now()
    await progress.untilAccepted(1)
  })

  expect(wrongs).toEqual([])
  // Requests to the frozen process get no answer; the other one answers.
  const meanwhile = ({ at }: Answer) => at > from && at < back
  expect(statusesIn(answers.filter(meanwhile))).toContain(202)
  expectUnaffected(answers.filter((answer) => meanwhile(answer) && typeof answer.status === 'number'))
  expectUnaffected(answers.filter(({ at }) => at > back))
  expectUnaffected(writes.filter(({ at }) => at > back))
})

it('F27: every process receives a stop signal', async () => {
  const codes: unknown[] = []
  const active: number[] = []
  const load = { messages: 300, perSecond: 50, writesPerSecond: 2 }
  const { wrongs, answers } = await ride.under(load, async (progress) => {
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

  expect(wrongs).toEqual([])
  expect(codes).toEqual([0, 0, 0, 0])
  expect(active).toEqual(QUEUES.map(() => 0))
  expect(statusesIn(answers)).not.toContain('late')
})

it('F28: the processes of each kind are restarted one after the other', async () => {
  const codes: unknown[] = []
  const load = { messages: 1_500, perSecond: 30, writesPerSecond: 5, patientClients: true }
  const { wrongs, answers, writes } = await ride.under(load, async () => {
    const end = Date.now() + RESTARTING_MS
    for (let turn = 0; turn < 2 * ROUNDS && Date.now() < end; turn += 1) {
      const kinds = ['web', 'worker'] as const
      codes.push(...(await Promise.all(kinds.map((kind) => stopInOrder(kind, turn % 2)))))
      await Promise.all(kinds.map((kind) => podUnderFaults.replace(kind, turn % 2)))
    }
  })

  expect(wrongs).toEqual([])
  expect(codes).toEqual(codes.map(() => 0))
  expect(codes.length).toBeGreaterThanOrEqual(4 * FEW)
  expect(statusesIn(writes)).toEqual([200])
  // Other pods repeat their deliveries.
  const expected: readonly unknown[] = [202, 503, 'none']
  expect(statusesIn(answers).filter((status) => !expected.includes(status))).toEqual([])
})
