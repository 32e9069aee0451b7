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
import { startBesiegedPod } from './pod-under-load.js'
import { type Answering, letTimePass, listeningPods, takes } from './subscribing-pods.js'
import { until } from './until.js'

export interface DeadPodsOptions {
  readonly store: 'Redis' | 'PostgreSQL'
  /** Take a connection and never answer. */
  readonly silent: number
  /** Take no connection. */
  readonly refusing: number
  /** Answer 500. */
  readonly failing: number
  readonly posts: number
  readonly threads: boolean
  readonly withinMs: number
  report?(line: string): void
}

export interface DeadPodsReport {
  /** Everything that is not as it must be, in sentences. */
  readonly wrongs: readonly string[]
  /** From the commit of a post to its arrival at the pod that is well, milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly workerMegabytes: number
  readonly settledMs: number
}

const QUEUES = ['outbound', 'outbound-slow', 'maintenance'] as const
/** Deliveries to one pod that may be on their way together, so that one of them may come in before the others. */
const MAX_CONCURRENT = 4
const workerFile = new URL('delivery-worker.ts', import.meta.url).pathname

/** Posts for one pod that is well and many that are not; in the end all of them come back. */
export async function runDeadPods(options: DeadPodsOptions): Promise<DeadPodsReport> {
  const fakePods = await startFakePods()
  const besieged = await startBesiegedPod(options.store)
  const { pod, environment } = besieged
  const instructions: DeliveryInstructions = {
    environment,
    othersPort: fakePods.server.port,
    threads: options.threads,
    limits: { exchangeMs: 10_000 },
  }
  const worker = startProcess(workerFile, instructions)
  try {
    let isBack = false
    let workerMegabytes = 0
    worker.onMessage(({ megabytes }) => {
      if (typeof megabytes === 'number') workerMegabytes = Math.max(workerMegabytes, megabytes)
    })
    const unlessBack =
      (answer: Answering): Answering =>
      (response, index) =>
        isBack ? takes(response) : answer(response, index)
    const listen = (kind: string, count: number, port: number, answer: Answering) =>
      listeningPods(fakePods, pod, hostsOf(kind, count, port), answer)
    const silent = await listen(
      'silent',
      options.silent,
      3000,
      unlessBack(() => false),
    )
    const refusing = await listen('refusing', options.refusing, REFUSING_PORT, takes)
    const failing = await listen(
      'failing',
      options.failing,
      3000,
      unlessBack((response) => {
        response.writeHead(500).end()
        return false
      }),
    )
    const arrivals: (() => void)[] = []
    const healthy = await listen('healthy', 1, 3000, (response) => {
      arrivals.shift()?.()
      return takes(response)
    })
    await worker.messageWith('ready')

    const dead = [silent, refusing, failing]
    const ids = dead.flatMap((pods) => pods.ids)
    const duePodsOf = (pods: readonly number[], isProven: boolean) => pods.map((podId) => ({ podId, isProven }))
    const duePods = [...duePodsOf(ids, false), ...duePodsOf(healthy.ids, true)]
    const write = await writerOf(pod)
    async function publishTo(pods: readonly number[], duePods: readonly DuePod[]) {
      const arrived = new Promise<void>((resolve) => arrivals.push(resolve))
      const id = await write(pods)
      const committed = performance.now()
      await startDeliveries(pod, duePods).catch(() => {}) // the sweeper finds them
      await arrived
      return { id, milliseconds: performance.now() - committed }
    }
    const began = Date.now()
    // By this one it proves that it is well.
    const proof = await publishTo(healthy.ids, duePodsOf(healthy.ids, false))
    await until('it has proven to be well', options.withinMs, async () => {
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
    const askedTwice = [...silent.asked, ...failing.asked].filter((count) => count > 1).length
    options.report?.('everything has arrived at the pod that is well; the others come back')

    isBack = true
    worker.signal('SIGUSR2')
    await until('all have everything', options.withinMs, async () => {
      await letTimePass(pod)
      return (await countUndelivered(pod)) === 0 && (await isIdle(pod, QUEUES))
    })
    const taken = (await Promise.all([healthy, ...dead].map((pods) => pods.taken(pod)))).flat()
    latencies.sort((one, other) => one - other)
    return {
      wrongs: [
        ...(askedTwice > 0 ? [`${askedTwice} pods that were away were asked again at once`] : []),
        ...taken.flatMap((got, index) => wrongWith(index, got, index === 0 ? [proof.id, ...messages] : messages)),
      ],
      p50: Math.round(latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN),
      p95: Math.round(latencies[Math.floor(latencies.length * 0.95)] ?? Number.NaN),
      workerMegabytes: Math.round(workerMegabytes),
      settledMs: Date.now() - began,
    }
  } finally {
    await worker.kill()
    await besieged.close()
    await fakePods.close()
  }
}

function hostsOf(kind: string, count: number, port: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${kind}${index}.example:${port}`)
}

/** Writes a post to these pods, and returns the id of its message. */
async function writerOf(pod: Services): Promise<(pods: readonly number[]) => Promise<number>> {
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

/** Each message once, and none before others that were written much earlier. */
function wrongWith(index: number, got: readonly number[], messages: readonly number[]): readonly string[] {
  const isComplete = got.length === messages.length && new Set(got).size === messages.length
  const isInOrder = got.every((id, place) => Math.abs(messages.indexOf(id) - place) < MAX_CONCURRENT)
  return isComplete && isInOrder ? [] : [`pod ${index} should have got ${messages} and has ${got}`]
}
