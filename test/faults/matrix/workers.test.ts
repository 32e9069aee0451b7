import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { QUEUES } from '../../../src/jobs/queue-names.js'
import { queueBackends } from '../../support/queue-backends.js'
import { type AssailedPod, type ProcessKind, startAssailedPod } from './assailed-pod.js'
import { openRide, type Ride } from './ride.js'
import { statusesIn } from './senders.js'

/** Longer than a job is its worker's own, and than it takes the others to notice. */
const PAST_ITS_LOCK = 46_000

describe.each(queueBackends)('with the queue in $store', ({ store }) => {
  let assailed: AssailedPod
  let ride: Ride
  beforeAll(async () => {
    assailed = await startAssailedPod({ store })
    ride = openRide(assailed)
  })
  afterAll(() => assailed?.close())

  async function stopInOrder(kind: ProcessKind, index: number): Promise<number | null | undefined> {
    const process = assailed.processes[kind][index]
    process?.signal('SIGTERM')
    return (await process?.ended)?.code
  }

  it('F01: workers are killed one after the other', async () => {
    const { wrongs } = await ride.under({ messages: 400, perSecond: 50, writesPerSecond: 2 }, async (progress) => {
      for (const [turn, share] of [0.1, 0.25, 0.4, 0.55, 0.7].entries()) {
        await progress.untilAccepted(share)
        await assailed.killAndReplace('worker', turn % 2)
      }
    })

    expect(wrongs).toEqual([])
  })

  it('F02: web processes are killed one after the other', async () => {
    const load = { messages: 400, perSecond: 50, writesPerSecond: 20 }
    const { wrongs, answers } = await ride.under(load, async (progress) => {
      for (const [turn, share] of [0.1, 0.3, 0.5, 0.7].entries()) {
        await progress.untilAccepted(share)
        await assailed.killAndReplace('web', turn % 2)
      }
    })

    expect(wrongs).toEqual([])
    expect(statusesIn(answers)).toContain('none') // somebody had a request in hand, or came too late
  })

  it('F04: a worker stands still for so long that others do its jobs', async () => {
    const { wrongs } = await ride.under({ messages: 200, perSecond: 50 }, async (progress) => {
      await progress.untilAccepted(0.3)
      assailed.processes.worker[0]?.signal('SIGSTOP')
      await pause(PAST_ITS_LOCK)
      assailed.processes.worker[0]?.signal('SIGCONT')
    })

    expect(wrongs).toEqual([])
  })

  it('F05: a web process stands still', async () => {
    let back = 0
    const load = { messages: 300, perSecond: 30, writesPerSecond: 4 }
    const { wrongs, answers, writes } = await ride.under(load, async (progress) => {
      await progress.untilAccepted(0.2)
      assailed.processes.web[0]?.signal('SIGSTOP')
      await pause(5_000)
      assailed.processes.web[0]?.signal('SIGCONT')
      back = Date.now()
      await progress.untilAccepted(1)
    })

    expect(wrongs).toEqual([])
    expect(statusesIn(answers.filter(({ at }) => at > back))).toEqual([202])
    expect(statusesIn(writes.filter(({ at }) => at > back))).toEqual([200])
  })

  it('F27: every process is told to stop', async () => {
    const codes: unknown[] = []
    const active: number[] = []
    const load = { messages: 300, perSecond: 50, writesPerSecond: 2 }
    const { wrongs, answers } = await ride.under(load, async (progress) => {
      await progress.untilAccepted(0.2)
      codes.push(...(await Promise.all([stopInOrder('worker', 0), stopInOrder('worker', 1)])))
      for (const queue of QUEUES) active.push((await assailed.pod.jobs.counts(queue)).active)
      await Promise.all([assailed.replace('worker', 0), assailed.replace('worker', 1)])
      await progress.untilAccepted(0.5)
      codes.push(await stopInOrder('web', 0))
      await assailed.replace('web', 0)
      codes.push(await stopInOrder('web', 1))
      await assailed.replace('web', 1)
    })

    expect(wrongs).toEqual([])
    expect(codes).toEqual([0, 0, 0, 0])
    expect(active).toEqual(QUEUES.map(() => 0))
    expect(statusesIn(answers)).not.toContain('late')
  })

  it('F28: one process after the other is restarted, twice', async () => {
    const load = { messages: 600, perSecond: 30, writesPerSecond: 5 }
    const { wrongs, answers, writes } = await ride.under(load, async () => {
      for (const kind of ['web', 'worker', 'web', 'worker'] as const) {
        for (const index of [0, 1]) {
          await stopInOrder(kind, index)
          await assailed.replace(kind, index)
        }
      }
    })

    expect(wrongs).toEqual([])
    // Whoever is told that nobody is there, or to come again, asks the other one.
    const expected: readonly unknown[] = [200, 202, 503, 'none']
    expect(statusesIn([...answers, ...writes]).filter((status) => !expected.includes(status))).toEqual([])
  })
})
