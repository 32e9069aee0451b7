import { createUser } from '../../src/domain/accounts/accounts.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { startDeliveries } from '../../src/jobs/outbox/start-deliveries.js'
import { Person } from '../../src/persistence/models/person.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Services } from '../../src/services/services.js'
import { administer } from '../support/databases/test-database.js'
import { startFakePods } from '../support/federation/fake-pods.js'
import { writeMessage } from '../support/federation/recording-pod.js'
import { deleteJobs } from '../support/queues/queue-backends.js'
import type { DeliveryInstructions } from './delivery-instructions.js'
import { type KilledWorkers, startKilledWorkers } from './killed-workers.js'
import { type PodUnderLoad, startPodUnderLoad } from './pod-under-load.js'
import { accept, addListeningPods, makeDeliveriesDue } from './subscribing-pods.js'
import { until } from './until.js'

export interface FanOutOptions {
  readonly store: 'Redis' | 'PostgreSQL'
  readonly pods: number
  /** Number of posts. Each post gets a comment, and is retracted. */
  readonly posts: number
  readonly killIntervalMs: number
  /** Number of kills. Default: workers are killed until nearly all deliveries have arrived. */
  readonly kills?: number
  readonly threads: boolean
  readonly withinMs: number
  report?(line: string): void
}

export interface FanOutReport {
  /** All violations, as sentences. */
  readonly violations: readonly string[]
  readonly deliveries: number
  /** Deliveries repeated because the worker was killed before it stored the success. */
  readonly repeated: number
  readonly killed: number
  readonly settledMs: number
}

const QUEUES = ['outbound', 'outbound-slow', 'maintenance'] as const
const workerFile = new URL('delivery-worker.ts', import.meta.url).pathname

/** The ids of a post, and of the messages that must not arrive before it. */
interface Chain {
  readonly post: number
  readonly after: readonly number[]
}

/**
 * Posts to many pods, while the delivering workers are killed repeatedly, the queue loses all data once, and every pod fails
 * occasionally.
 */
export async function runFanOut(options: FanOutOptions): Promise<FanOutReport> {
  const fakePods = await startFakePods()
  const podUnderLoad = await startPodUnderLoad(options.store)
  const { pod, environment } = podUnderLoad
  let workers: KilledWorkers | undefined
  try {
    let responses = 0
    const hosts = Array.from({ length: options.pods }, (_, index) => `f${index}.example:3000`)
    const listeners = await addListeningPods(fakePods, pod, hosts, (response) => {
      responses += 1
      if (responses % 17 !== 0) return accept(response)
      response.writeHead(responses % 2 === 0 ? 500 : 400).end()
      return false
    })
    const limits = { leaseMs: 2_000, drainMs: 1_000 }
    const instructions: DeliveryInstructions = {
      environment,
      othersPort: fakePods.server.port,
      threads: options.threads,
      limits,
    }
    workers = startKilledWorkers(instructions, { lifeMs: options.killIntervalMs, kills: options.kills, workerFile })
    const began = Date.now()
    const chains = await writePosts(pod, listeners.ids, options.posts)
    const total = options.pods * chains.length * 3

    await until(
      'half of the deliveries have arrived',
      options.withinMs,
      async () => (await countUndelivered(pod)) < total / 2,
    )
    options.report?.('the queue is emptied')
    await emptyQueue(podUnderLoad)
    await until(
      'nearly all deliveries have arrived',
      options.withinMs,
      async () => (await countUndelivered(pod)) < total / 10,
    )
    await workers.stopKilling()
    options.report?.(`${workers.killed} workers were killed; no more kills`)
    await until(
      'no work is left',
      options.withinMs,
      async () => (await countUndelivered(pod)) === 0 && (await isIdle(pod, QUEUES)),
    )
    const received = await listeners.acceptedMessages(pod)
    const settledMs = Date.now() - began
    const repeated = received.flat().length - total
    return {
      violations: findOrderViolations(hosts, received, chains),
      deliveries: total,
      repeated,
      killed: workers.killed,
      settledMs,
    }
  } finally {
    await workers?.close()
    await podUnderLoad.close()
    await fakePods.close()
  }
}

async function writePosts(pod: Services, pods: readonly number[], posts: number): Promise<readonly Chain[]> {
  const { guid } = await createUser(pod, { username: 'ann', password: 'the password of ann' })
  const { id: senderId, address: author } = await Person.query(pod.db).findOne({ guid }).throwIfNotFound()
  const duePods = pods.map((podId) => ({ podId, isProven: false }))
  const chains: Chain[] = []
  for (let index = 0; index < posts; index += 1) {
    const post = newGuid()
    const now = new Date()
    const steps: readonly (readonly ['post' | 'comment', string, 'create' | 'retract', Entity])[] = [
      [
        'post',
        post,
        'create',
        { type: 'status_message', author, guid: post, created_at: now, text: post, photos: [], public: true },
      ],
      [
        'comment',
        newGuid(),
        'create',
        { type: 'comment', author, guid: newGuid(), parent_guid: post, text: post, created_at: now },
      ],
      ['post', post, 'retract', { type: 'retraction', author, target_guid: post, target_type: 'Post' }],
    ]
    const ids: number[] = []
    for (const [record, guid, verb, entity] of steps) {
      ids.push((await writeMessage(pod, { senderId, record, guid, verb, entity, pods })).id)
      await startDeliveries(pod, duePods).catch(() => {}) // the sweeper finds them
    }
    chains.push({ post: ids[0] ?? Number.NaN, after: ids.slice(1) })
  }
  return chains
}

/** Number of deliveries that have not arrived. Makes delayed attempts due now. */
async function countUndelivered(pod: Services): Promise<number> {
  await makeDeliveriesDue(pod)
  const { rows } = await pod.db.raw(`select count(*) from deliveries`)
  return Number(rows[0].count)
}

/** Retries the statement, because other sessions hold locks on these tables. */
async function emptyQueue({ redis, database }: PodUnderLoad): Promise<void> {
  if (redis !== undefined) return redis.empty()
  await until('the queue is empty', 30_000, async () => {
    await administer(database.url, deleteJobs)
    return true
  })
}

function findOrderViolations(
  hosts: readonly string[],
  received: readonly (readonly number[])[],
  chains: readonly Chain[],
): readonly string[] {
  return hosts.flatMap((host, index) => {
    const ids = received[index] ?? []
    const unexpected = ids.some((id) => Number.isNaN(id)) ? [`${host} received a message that was not sent`] : []
    const unordered = chains.filter((chain) => !arrivedInOrder(ids, chain))
    const order = unordered.map(({ post, after }) => `${host} should have received ${post} before ${after}: ${ids}`)
    return [...unexpected, ...order]
  })
}

/** Whether each message has arrived at least once, and the last copy of the post before the others. */
function arrivedInOrder(ids: readonly number[], { post, after }: Chain): boolean {
  return ids.includes(post) && after.every((id) => ids.lastIndexOf(post) < ids.indexOf(id))
}
