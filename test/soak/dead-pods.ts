import { createUser } from '../../src/domain/accounts/accounts.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { startDeliveries } from '../../src/jobs/outbox/start-deliveries.js'
import { Person } from '../../src/persistence/models/person.js'
import type { DuePod } from '../../src/persistence/outbound/due-deliveries.js'
import type { Services } from '../../src/services/services.js'
import { startFakePods } from '../support/federation/fake-pods.js'
import { writeMessage } from '../support/federation/recording-pod.js'
import { startProcess } from '../support/processes/child-process.js'
import { type DeliveryInstructions, REFUSING_PORT } from './delivery-instructions.js'
import { startPodUnderLoad } from './pod-under-load.js'
import { accept, addListeningPods, makeDeliveriesDue, type ResponseScript } from './subscribing-pods.js'
import { until } from './until.js'

export interface DeadPodsOptions {
  readonly store: 'Redis' | 'PostgreSQL'
  /** Number of pods that accept connections and never respond. */
  readonly silent: number
  /** Number of pods that refuse connections. */
  readonly refusing: number
  /** Number of pods that respond 500. */
  readonly failing: number
  readonly posts: number
  readonly threads: boolean
  readonly withinMs: number
  report?(line: string): void
}

export interface DeadPodsReport {
  /** All violations, as sentences. */
  readonly violations: readonly string[]
  /** Percentiles of the latency from the commit of a post to its arrival at the healthy pod, in milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly workerMegabytes: number
  readonly settledMs: number
}

const QUEUES = ['outbound', 'outbound-slow', 'maintenance'] as const
/** Concurrent deliveries to one pod, which may arrive in another order. */
const MAX_CONCURRENT = 4
const workerFile = new URL('delivery-worker.ts', import.meta.url).pathname

/** Posts to one healthy pod and many dead ones. At the end all dead pods respond again. */
export async function runDeadPods(options: DeadPodsOptions): Promise<DeadPodsReport> {
  const fakePods = await startFakePods()
  const podUnderLoad = await startPodUnderLoad(options.store)
  const { pod, environment } = podUnderLoad
  const instructions: DeliveryInstructions = {
    environment,
    othersPort: fakePods.server.port,
    threads: options.threads,
    limits: { exchangeMs: 10_000 },
  }
  const worker = startProcess(workerFile, instructions)
  try {
    let isRestored = false
    let workerMegabytes = 0
    worker.onMessage(({ megabytes }) => {
      if (typeof megabytes === 'number') workerMegabytes = Math.max(workerMegabytes, megabytes)
    })
    const untilRestored =
      (script: ResponseScript): ResponseScript =>
      (response, index) =>
        isRestored ? accept(response) : script(response, index)
    const listen = (kind: string, count: number, port: number, script: ResponseScript) =>
      addListeningPods(fakePods, pod, hostsOf(kind, count, port), script)
    const silent = await listen(
      'silent',
      options.silent,
      3000,
      untilRestored(() => false),
    )
    const refusing = await listen('refusing', options.refusing, REFUSING_PORT, accept)
    const failing = await listen(
      'failing',
      options.failing,
      3000,
      untilRestored((response) => {
        response.writeHead(500).end()
        return false
      }),
    )
    const arrivals: (() => void)[] = []
    const healthy = await listen('healthy', 1, 3000, (response) => {
      arrivals.shift()?.()
      return accept(response)
    })
    await worker.messageWith('ready')

    const dead = [silent, refusing, failing]
    const ids = dead.flatMap((pods) => pods.ids)
    const duePodsOf = (pods: readonly number[], isProven: boolean) => pods.map((podId) => ({ podId, isProven }))
    const duePods = [...duePodsOf(ids, false), ...duePodsOf(healthy.ids, true)]
    const write = await openPostWriter(pod)
    async function publishTo(pods: readonly number[], duePods: readonly DuePod[]) {
      const arrived = new Promise<void>((resolve) => arrivals.push(resolve))
      const id = await write(pods)
      const committed = performance.now()
      await startDeliveries(pod, duePods).catch(() => {}) // the sweeper finds them
      await arrived
      return { id, milliseconds: performance.now() - committed }
    }
    const began = Date.now()
    // The first delivery proves that the pod is healthy.
    const proof = await publishTo(healthy.ids, duePodsOf(healthy.ids, false))
    await until('the pod has proven to be healthy', options.withinMs, async () => {
      const [{ lastSuccessAt }] = await pod.db('pods').whereIn('id', healthy.ids).select('lastSuccessAt')
      return lastSuccessAt !== null
    })
    const latencies: number[] = []
    const messages: number[] = []
    for (let index = 0; index < options.posts; index += 1) {
      const { id, milliseconds } = await publishTo([...ids, ...healthy.ids], duePods)
      messages.push(id)
      latencies.push(milliseconds)
    }
    const podsWithRetries = [...silent.requestCounts, ...failing.requestCounts].filter((count) => count > 1).length
    options.report?.('all posts have arrived at the healthy pod; the others respond again')

    isRestored = true
    worker.signal('SIGUSR2')
    await until('all posts have arrived everywhere', options.withinMs, async () => {
      await makeDeliveriesDue(pod)
      return (await countUndelivered(pod)) === 0 && (await isIdle(pod, QUEUES))
    })
    const received = (await Promise.all([healthy, ...dead].map((pods) => pods.acceptedMessages(pod)))).flat()
    latencies.sort((one, other) => one - other)
    return {
      violations: [
        ...(podsWithRetries > 0 ? [`${podsWithRetries} unreachable pods got another request at once`] : []),
        ...received.flatMap((ids, index) =>
          describeOrderViolation(index, ids, index === 0 ? [proof.id, ...messages] : messages),
        ),
      ],
      p50: Math.round(latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN),
      p95: Math.round(latencies[Math.floor(latencies.length * 0.95)] ?? Number.NaN),
      workerMegabytes: Math.round(workerMegabytes),
      settledMs: Date.now() - began,
    }
  } finally {
    await worker.kill()
    await podUnderLoad.close()
    await fakePods.close()
  }
}

function hostsOf(kind: string, count: number, port: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${kind}${index}.example:${port}`)
}

/** Returns a function that writes a post for pods and returns the id of its message. */
async function openPostWriter(pod: Services): Promise<(pods: readonly number[]) => Promise<number>> {
  const { guid } = await createUser(pod, { username: 'ann', password: 'the password of ann' })
  const { id: senderId, address: author } = await Person.query(pod.db).findOne({ guid }).throwIfNotFound()
  return async (pods) => {
    const post = { type: 'status_message', author, guid: newGuid(), text: 'Hello', photos: [], public: true } as const
    return (await writeMessage(pod, { senderId, entity: { ...post, created_at: new Date() }, pods })).id
  }
}

async function countUndelivered({ db }: Services): Promise<number> {
  const { rows } = await db.raw(`select count(*) from deliveries`)
  return Number(rows[0].count)
}

/** A violation if a message is missing or repeated, or arrived before much earlier ones. */
function describeOrderViolation(
  index: number,
  received: readonly number[],
  messages: readonly number[],
): readonly string[] {
  const isComplete = received.length === messages.length && new Set(received).size === messages.length
  const isInOrder = received.every((id, place) => Math.abs(messages.indexOf(id) - place) < MAX_CONCURRENT)
  return isComplete && isInOrder ? [] : [`pod ${index} should have received ${messages} and has ${received}`]
}
