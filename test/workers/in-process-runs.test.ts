import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/enqueue-jobs.js'
import { groupOfRows } from '../../src/jobs/outbox/job-groups.js'
import { type InProcessHandler, runInGroups } from '../../workers/in-process-runs/run-in-groups.js'
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
  let greetedLocally: string[]
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
    greetedLocally = []
    greetedByJob = []
  })

  function start(handler: InProcessHandler): void {
    const handlers: HandlerTable = {
      async greet(_pod, work) {
        const { name } = work.data as Greeting
        greetedByJob.push(name)
      },
    }
    workers = startTestWorkers(pod, {
      queues: ['notify'],
      handlers: { notify: handlers },
      inProcessHandlers: [handler],
    })
  }

  async function commit(...names: string[]): Promise<void> {
    const all = names.map((name) => ({ name }))
    await pod.db.transaction((transaction) => enqueueJobsOfKind(pod, transaction, greet, all))
  }

  const greetLocally = runInGroups<Greeting>({ maxItems: 1 }, async ({ db }, rows) => {
    if (rows.some(({ data }) => data.name === 'unknown')) throw new Error('There is no such name.')
    const taken = await db.transaction((transaction) => groupOfRows(rows).take(transaction))
    greetedLocally.push(...taken.map(({ name }) => name))
  })

  it('are done after their commit, and no job is added', async () => {
    const addOutboxRows = vi.spyOn(pod.jobs, 'addOutboxRows')
    start({ job: greet, maxConcurrent: 2, open: greetLocally })
    await commit('Alice', 'Bob')
    await untilIdle(pod)

    expect(greetedLocally.toSorted()).toEqual(['Alice', 'Bob'])
    expect(greetedByJob).toEqual([])
    expect(addOutboxRows).not.toHaveBeenCalled()
    addOutboxRows.mockRestore()
  })

  it('get a job when they fail', async () => {
    start({ job: greet, maxConcurrent: 2, open: greetLocally })
    await commit('unknown', 'Bob')
    await untilIdle(pod)

    expect([greetedLocally, greetedByJob]).toEqual([['Bob'], ['unknown']])
  })

  it('have no second effect when another worker has done them', async () => {
    const { released, release } = openGate()
    const addOutboxRows = vi.spyOn(pod.jobs, 'addOutboxRows')
    const open: InProcessHandler['open'] = (...rest) => {
      const run = greetLocally(...rest)
      return async (row) => {
        await released
        await run(row)
      }
    }
    start({ job: greet, maxConcurrent: 2, open })
    await commit('Alice')
    await pod.db('outbox').delete()
    release()
    await workers?.close()

    expect(greetedLocally).toEqual([])
    expect(addOutboxRows).not.toHaveBeenCalled()
    addOutboxRows.mockRestore()
  })

  it('get jobs when as many run as may', async () => {
    start({ job: greet, maxConcurrent: 1, open: greetLocally })
    await commit('Alice', 'Bob', 'Carol')
    await untilIdle(pod)

    expect(greetedLocally).toEqual(['Alice'])
    expect(greetedByJob.toSorted()).toEqual(['Bob', 'Carol'])
  })

  it('get jobs while an operator has stopped their queue', async () => {
    start({ job: greet, maxConcurrent: 2, open: greetLocally })
    pod.jobs.inProcessRuns.stopFor(['notify'])
    await commit('Alice')
    await untilIdle(pod)
    pod.jobs.inProcessRuns.stopFor([])

    expect([greetedLocally, greetedByJob]).toEqual([[], ['Alice']])
  })

  it('no longer run when the workers close, and a running one is waited for', async () => {
    const { released, release } = openGate()
    start({
      job: greet,
      maxConcurrent: 2,
      open: runInGroups<Greeting>({ maxItems: 1 }, async ({ db }, rows) => {
        await released
        const taken = await db.transaction((transaction) => groupOfRows(rows).take(transaction))
        greetedLocally.push(...taken.map(({ name }) => name))
      }),
    })
    await commit('Alice')
    const closed = workers?.close()
    await commit('Bob')
    release()
    await closed

    expect(greetedLocally).toEqual(['Alice'])
  })

  it('run in groups while others run', async () => {
    const groups: number[] = []
    const { released, release } = openGate()
    start({
      job: greet,
      maxConcurrent: 10,
      open: runInGroups<Greeting>({ maxItems: 10 }, async ({ db }, rows) => {
        groups.push(rows.length)
        await released
        await db.transaction((transaction) => groupOfRows(rows).take(transaction))
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

  it('wait for others after a small group, until the process ends', async () => {
    const groups: string[][] = []
    start({
      job: greet,
      maxConcurrent: 10,
      open: runInGroups<Greeting>(
        { maxItems: 10, spacing: { intervalMs: 3_600_000, fullGroupWork: 3 } },
        async ({ db }, rows) => {
          const taken = await db.transaction((transaction) => groupOfRows(rows).take(transaction))
          groups.push(taken.map(({ name }) => name))
        },
      ),
    })
    await commit('Alice')
    await vi.waitFor(() => expect(groups).toEqual([['Alice']]))
    await commit('Bob')
    await commit('Carol', 'Dan')
    await vi.waitFor(() => expect(groups).toEqual([['Alice'], ['Bob', 'Carol', 'Dan']]))
    await commit('Eve')
    await vi.waitFor(() => expect(groups).toHaveLength(3))
    await commit('Frank')
    await workers?.close()

    expect(groups.slice(2)).toEqual([['Eve'], ['Frank']])
  })
})
