import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/outbox.js'
import { type DirectHandler, runEach, runTogether } from '../../workers/direct-runs.js'
import type { HandlerTable } from '../../workers/run-job.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

interface Greeting {
  readonly name: string
}

const greet = defineJob<Greeting>()('notify', 'greet', retriedForHours)

function openGate(): { readonly released: Promise<void>; readonly release: () => void } {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return { released, release: () => release() }
}

describe.each(queueBackends)('rows that run without a job, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  let workers: RunningWorkers | undefined
  let greetedDirectly: string[]
  let greetedByJob: string[]

  beforeAll(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterAll(async () => {
    await workers?.close()
    await stores.close()
  })
  beforeEach(async () => {
    await workers?.close()
    await pod.db('outbox').delete()
    await stores.emptyQueue()
    greetedDirectly = []
    greetedByJob = []
  })

  function start(direct: DirectHandler): void {
    const handlers: HandlerTable = {
      async greet(_pod, work) {
        const { name } = work.data as Greeting
        greetedByJob.push(name)
      },
    }
    workers = startTestWorkers(pod, { queues: ['notify'], handlers: { notify: handlers }, direct: [direct] })
  }

  async function commit(...names: string[]): Promise<void> {
    const all = names.map((name) => ({ name }))
    await pod.db.transaction((transaction) => enqueueJobsOfKind(pod, transaction, greet, all))
  }

  const greetDirectly = runEach(async ({ db }, work) => {
    const { name } = work.data as Greeting
    if (name === 'unknown') throw new Error('There is no such name.')
    await db.transaction((transaction) => work.finish(transaction))
    greetedDirectly.push(name)
  })

  it('are done after their commit, and no job is added', async () => {
    const handOver = vi.spyOn(pod.jobs, 'handOver')
    start({ job: greet, atOnce: 2, open: greetDirectly })
    await commit('Alice', 'Bob')
    await untilIdle(pod)

    expect(greetedDirectly.toSorted()).toEqual(['Alice', 'Bob'])
    expect(greetedByJob).toEqual([])
    expect(handOver).not.toHaveBeenCalled()
    handOver.mockRestore()
  })

  it('get a job when they fail', async () => {
    start({ job: greet, atOnce: 2, open: greetDirectly })
    await commit('unknown', 'Bob')
    await untilIdle(pod)

    expect([greetedDirectly, greetedByJob]).toEqual([['Bob'], ['unknown']])
  })

  it('have no second effect when another worker has done them', async () => {
    const { released, release } = openGate()
    const handOver = vi.spyOn(pod.jobs, 'handOver')
    const open: DirectHandler['open'] = (...rest) => {
      const run = greetDirectly(...rest)
      return async (row) => {
        await released
        await run(row)
      }
    }
    start({ job: greet, atOnce: 2, open })
    await commit('Alice')
    await pod.db('outbox').delete()
    release()
    await workers?.close()

    expect(greetedDirectly).toEqual([])
    expect(handOver).not.toHaveBeenCalled()
    handOver.mockRestore()
  })

  it('get jobs when as many run as may', async () => {
    start({ job: greet, atOnce: 1, open: greetDirectly })
    await commit('Alice', 'Bob', 'Carol')
    await untilIdle(pod)

    expect(greetedDirectly).toEqual(['Alice'])
    expect(greetedByJob.toSorted()).toEqual(['Bob', 'Carol'])
  })

  it('get jobs while an operator has stopped their queue', async () => {
    start({ job: greet, atOnce: 2, open: greetDirectly })
    pod.jobs.directRuns.stopFor(['notify'])
    await commit('Alice')
    await untilIdle(pod)
    pod.jobs.directRuns.stopFor([])

    expect([greetedDirectly, greetedByJob]).toEqual([[], ['Alice']])
  })

  it('no longer run when the workers close, and a running one is waited for', async () => {
    const { released, release } = openGate()
    start({
      job: greet,
      atOnce: 2,
      open: runEach(async ({ db }, work) => {
        await released
        await db.transaction((transaction) => work.finish(transaction))
        greetedDirectly.push((work.data as Greeting).name)
      }),
    })
    await commit('Alice')
    const closed = workers?.close()
    await commit('Bob')
    release()
    await closed

    expect(greetedDirectly).toEqual(['Alice'])
  })

  it('run in groups while others run', async () => {
    const groups: number[] = []
    const { released, release } = openGate()
    start({
      job: greet,
      atOnce: 10,
      open: runTogether(10, async ({ db }, ids) => {
        groups.push(ids.length)
        await released
        await db('outbox')
          .whereIn('id', [...ids])
          .delete()
      }),
    })
    await commit('Alice')
    await vi.waitFor(() => expect(groups).toEqual([1]))
    await commit('Bob')
    await commit('Carol', 'Dan')
    release()
    await untilIdle(pod)

    expect(groups).toEqual([1, 3])
  })
})
