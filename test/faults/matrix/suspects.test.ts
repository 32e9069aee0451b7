import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { receivePublicJob } from '../../../src/jobs/definitions.js'
import { until } from '../../soak/until.js'
import { postBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { PodProcess } from '../../support/processes/pod-process.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario, type Scenario } from './scenario-run.js'
import { store } from './this-run.js'

const KILLING = 'the text that kills'
const FREEZING = 'the text that freezes'
const BLOCKING = 'the text that blocks'
/** Longer than a short job lock plus the time until other workers detect its loss. */
const LONGER_THAN_LOCK_MS = 16_000

let podUnderFaults: PodUnderFaults
let scenario: Scenario
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({
    store: store(),
    settings: {
      FAULTS_KILLING: KILLING,
      FAULTS_FREEZING: FREEZING,
      FAULTS_BLOCKING: BLOCKING,
      FAULTS_BLOCKED_MS: `${LONGER_THAN_LOCK_MS}`,
    },
    hooksOf: (kind) => (kind === 'worker' ? { hooks: ['short-locks', 'harmful-text'] } : undefined),
  })
  scenario = openScenario(podUnderFaults)
})
afterAll(() => podUnderFaults?.close())

/** Enqueues one job with fifty-one messages, one of them with this text. */
async function enqueueBatch(text: string): Promise<void> {
  const author = await podUnderFaults.otherPods.addKnownPerson()
  const posts = Array.from({ length: 51 }, (_, index) => postBy(author, { text: index === 25 ? text : 'harmless' }))
  const messages = posts.map((post) => envelopeOf(author, post))
  scenario.addExpectedPosts(posts.filter((post) => post.text !== KILLING))
  await until('the job is enqueued', 30_000, async () => {
    await podUnderFaults.pod.jobs.add(receivePublicJob, { acceptedAt: new Date().toISOString(), messages })
    return true
  })
}

/** Acts as a process supervisor: restarts a worker that ends. */
function superviseWorkers() {
  const over = new AbortController()
  const stopped = once(over.signal, 'abort')
  let crashes = 0
  async function supervise(index: number): Promise<void> {
    while (!over.signal.aborted) {
      await Promise.race([podUnderFaults.processes.worker[index]?.ended, stopped])
      if (over.signal.aborted) return
      crashes += 1
      await podUnderFaults.replace('worker', index)
    }
  }
  const supervised = Promise.all([supervise(0), supervise(1)])
  return {
    async stop(): Promise<number> {
      over.abort()
      await supervised
      return crashes
    },
  }
}

it('F03: a message kills every worker that processes it', async () => {
  const supervisor = superviseWorkers()
  const { violations } = await scenario
    .run({ messages: 400, perSecond: 20, settledWithin: 300_000 }, async (progress) => {
      await progress.untilAccepted(0.1)
      await enqueueBatch(KILLING)
    })
    .finally(() => supervisor.stop())

  expect(violations).toEqual(['a dead letter, receive-public of inbound: crashed'])
  const [dead] = await podUnderFaults.pod.jobs.failed('inbound', 0, 10)
  expect(dead?.data.messages).toHaveLength(1)
  expect(await supervisor.stop()).toBeGreaterThan(5) // first in a batch, and five times alone
  await dead?.remove()
  expect(await listDeadLetters(podUnderFaults.pod)).toEqual([])
})

/** Whether the worker has logged a lost job. Workers log that at most once a minute, so only a new worker is certain to log it. */
function hasLostJobs({ logged }: Pick<PodProcess, 'logged'>): boolean {
  return logged.some(({ where, err }) => where === 'worker inbound' && /could not renew lock/.test(JSON.stringify(err)))
}

async function untilJobsAreLost(): Promise<void> {
  await until('a worker has logged a lost job', 60_000, async () => podUnderFaults.processes.worker.some(hasLostJobs))
}

async function replaceWorkers(): Promise<void> {
  await Promise.all([0, 1].map((index) => podUnderFaults.killAndReplace('worker', index)))
}

it('F32: a worker is blocked until others run its jobs', async () => {
  await replaceWorkers()
  const { violations } = await scenario.run({ messages: 200, perSecond: 50 }, async (progress) => {
    await progress.untilAccepted(0.2)
    await enqueueBatch(BLOCKING)
    await untilJobsAreLost()
  })

  expect(violations).toEqual([])
})

it('F04: a worker is frozen until others run its jobs', async () => {
  const { pod, processes } = podUnderFaults
  const countUnread = async () => (await pod.db('notifications').where({ read: false }).select('id')).length
  await replaceWorkers()
  const { violations } = await scenario.run({ messages: 200, perSecond: 50 }, async (progress) => {
    await progress.untilAccepted(0.3)
    await enqueueBatch(FREEZING)
    await Promise.all([progress.untilAccepted(1), pause(LONGER_THAN_LOCK_MS)])
    await podUnderFaults.waitUntilIdle()
    expect(await countUnread()).toBeGreaterThan(0)
    await pod.db('notifications').update({ read: true })
    for (const worker of processes.worker) worker.signal('SIGCONT')
    await untilJobsAreLost()
  })

  expect(violations).toEqual([])
  expect(await countUnread()).toBe(0)
})
