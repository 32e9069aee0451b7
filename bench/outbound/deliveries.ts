import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { Agent } from 'undici'
import { readConfig } from '../../src/config/config.js'
import { inChunks } from '../../src/jobs/chunks.js'
import { dispatchJob, dispatchRelaysJob } from '../../src/jobs/definitions.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/enqueue-jobs.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, latencyOf, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { environmentOf, startProcess } from '../inbound/inbound-pod.js'
import { BENCH_MARKER } from '../lived/lived-pod.js'
import { countStatements, type Statements, stopCountingStatements } from '../lived/lived-statements.js'
import { type BenchStores, openEachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { endProcess, forkFile, nextMessage } from '../machine/child-process.js'
import { memoryOf, processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import { type Author, addAuthor, addPosts } from './author.js'
import type { DeliveryResponses, ExpectedDeliveries, SubscribingPodsReady } from './subscribing-pods.js'

const CASES = ['healthy', 'dead', 'comments']
const HEALTHY_PODS = 1_000
/** Concurrent requests of the bare client: the number of pods to which a worker delivers at a time. */
const MAX_CONCURRENT_BARE_REQUESTS = 128
const WARM_UPS = 8
/** The 5 000 pods of a fan-out: a tenth begins to hang, and a tenth refuses connections. */
const FAN_OUT = { answering: 4_000, hanging: 500, refusing: 500 } as const
/** Below the range of ephemeral ports. */
const CLOSED_PORT = 20_000
const REFUSING_PORTS = Array.from({ length: FAN_OUT.refusing }, (_, index) => CLOSED_PORT + index)
/** Pods that receive other posts during the fan-out. */
const OTHER_PODS = 20
const OTHER_POSTS = 8
const OTHER_POST_INTERVAL_MS = 150
/** Maximum latency of other posts during the fan-out. */
const MAX_LATENCY_MS = 2_000
const SUBSCRIBING_PODS = 500
const COMMENTS = 200
const RELAYS_IN_JOB = 32
const POLL_INTERVAL_MS = 20

const SETTINGS = { shared_preload_libraries: 'pg_stat_statements' }

/** Deliveries by the worker of a pod: to healthy pods, to pods of which a fifth is dead, and of many comments. */
export async function* benchDeliveries({
  rounds,
  messages = COMMENTS,
  queues,
  cases = CASES,
  keep,
}: BenchOptions): AsyncGenerator<Result> {
  const pods = FAN_OUT.answering + FAN_OUT.hanging + OTHER_PODS
  const peer = forkFile('outbound/subscribing-pods', { env: { ...process.env, PODS: `${pods}` } })
  try {
    const { ports } = await nextMessage<SubscribingPodsReady>(peer)
    for await (const { queue, stores } of openEachStore({ settings: SETTINGS }, queues)) {
      yield* measureStore({ queue, stores, peer, ports, rounds, cases, comments: messages, keep })
    }
  } finally {
    peer.kill()
  }
}

interface Setting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly peer: ChildProcess
  /** Ports of the pods that the peer simulates. */
  readonly ports: readonly number[]
  readonly rounds: number
  readonly cases: readonly string[]
  readonly comments: number
  /** Folder for the statements with their times. */
  readonly keep: string | undefined
}

interface DeliverySetup extends Setting {
  readonly services: OpenServices
  readonly worker: ChildProcess
  /** Process ids of the worker and the servers. */
  readonly pids: Readonly<Record<string, number>>
}

async function* measureStore(setting: Setting): AsyncGenerator<Result> {
  const { stores, cases } = setting
  const environment = environmentOf(stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  await stopCountingStatements(stores.superuserUrl)
  const { child: worker } = await startProcess('../workers/main', environment)
  try {
    const setup = { ...setting, services, worker, pids: { worker: worker.pid ?? Number.NaN, ...stores.pids } }
    if (cases.includes('healthy')) yield await measureHealthyPods(setup)
    if (cases.includes('dead')) yield* measureDeadPods(setup)
    if (cases.includes('comments')) yield await measureComments(setup)
  } finally {
    await endProcess(worker)
    await services.close()
    await crypto.close()
  }
}

async function addAuthorWithReaders(services: OpenServices, name: string, ports: readonly number[]): Promise<Author> {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const author = await addAuthor(services, { author: name, peopleOnEachPod: 1, bits: 2048 }, ports, publicKey)
  await services.db.raw('analyze')
  return author
}

/** A run of deliveries: the time until all have arrived, and the processor time until their results are stored. */
interface DeliveryRun {
  readonly seconds: number
  /** Microseconds per delivery, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly responses: DeliveryResponses['responses']
  /** Remaining deliveries, to pods that do not respond. */
  readonly left: number
}

async function measureDeliveries(
  setup: DeliverySetup,
  expected: ExpectedDeliveries,
  begin: () => Promise<unknown>,
): Promise<DeliveryRun> {
  const { peer, pids, services } = setup
  await expectDeliveries(peer, expected)
  const before = processorTimesOf(pids)
  const start = performance.now()
  const arrived = nextMessage<DeliveryResponses>(peer)
  await begin()
  const { responses } = await arrived
  const seconds = (performance.now() - start) / 1_000
  if (expected.hanging.length > 0) await expectDeliveries(peer, { ...expected, hangUp: true })
  const left = await waitUntilSettled(services)
  return { seconds, cpu: timePerMessage(expected.deliveries, before, processorTimesOf(pids)), responses, left }
}

async function expectDeliveries(peer: ChildProcess, expected: ExpectedDeliveries): Promise<void> {
  peer.send(expected)
  await nextMessage(peer)
}

/** Waits until only deliveries to pods that are away are left, and returns their number. */
async function waitUntilSettled({ db }: OpenServices): Promise<number> {
  for (;;) {
    const { rows } = await db.raw(
      `select count(*) as left, count(*) filter (where next_try_at > now()) as away
       from deliveries join pods on pods.id = deliveries.pod_id ${BENCH_MARKER}`,
    )
    const [{ left, away }] = rows
    if (left === away) return left
    await pause(POLL_INTERVAL_MS)
  }
}

async function publish({ services }: DeliverySetup, author: Author): Promise<void> {
  const posts = await addPosts(services, author, { public: true, posts: 1 })
  await services.db.transaction((transaction) => enqueueJobsOfKind(services, transaction, dispatchJob, posts))
}

async function keepStatements({ keep }: DeliverySetup, name: string, statements: Statements): Promise<void> {
  if (keep === undefined) return
  await mkdir(keep, { recursive: true })
  await writeFile(join(keep, `deliveries-${name}.json`), JSON.stringify(statements, null, 1))
}

/** One post to a thousand pods. Each pod closes its connection, because between two posts of a user minutes pass. */
async function measureHealthyPods(setup: DeliverySetup): Promise<Result> {
  const { services, peer, queue, ports, rounds, stores } = setup
  const author = await addAuthorWithReaders(services, 'hal', ports.slice(0, HEALTHY_PODS))
  const expected = { deliveries: HEALTHY_PODS, hanging: [], closesConnections: true }
  const once = () => measureDeliveries(setup, expected, () => publish(setup, author))
  const measured: { readonly sent: DeliveryRun; readonly bare: DeliveryRun }[] = []
  for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await once()
  const { envelope } = await services.db('outboundMessages').orderBy('id', 'desc').first('envelope')
  const postEach = () => postToEach(peer, ports.slice(0, HEALTHY_PODS), expected, envelope)
  for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await postEach()
  for (let round = 0; round < rounds; round += 1) measured.push({ sent: await once(), bare: await postEach() })
  const statements = await countStatements(stores.superuserUrl, once)
  await keepStatements(setup, `healthy-${queue}`, statements)
  const bareCpu = median(measured.map(({ bare }) => bare.cpu['bare'] ?? Number.NaN))
  const cpu = medianCpu(measured.map(({ sent }) => sent))
  return {
    ...compareWithBare(measured),
    bench: 'deliveries',
    case: `one post to ${HEALTHY_PODS} pods, ${queue}`,
    cpu_us: { ...cpu, bare: bareCpu },
    statements: statements.count / HEALTHY_PODS,
    more: { beyond_bare_us: Math.round((cpu['worker'] ?? Number.NaN) - bareCpu) },
    floor: FLOORS.deliveries.healthy,
    ok: measured.every(({ sent }) => sent.left === 0),
  }
}

function compareWithBare(measured: readonly { readonly sent: DeliveryRun; readonly bare: DeliveryRun }[]) {
  const rateOf = ({ seconds, responses }: DeliveryRun) => responses.length / seconds
  const rates = measured.map(({ sent }) => rateOf(sent))
  return {
    value: median(rates),
    unit: 'deliveries/s',
    limit: median(measured.map(({ bare }) => rateOf(bare))),
    ratio: median(measured.map(({ sent, bare }) => rateOf(sent) / rateOf(bare))),
    rounds: measured.length,
    spread: spreadOf(rates),
  }
}

/** Sends the same bytes to the same pods with the HTTP client alone. */
async function postToEach(
  peer: ChildProcess,
  ports: readonly number[],
  expected: ExpectedDeliveries,
  body: string,
): Promise<DeliveryRun> {
  const agent = new Agent({ pipelining: 1 })
  await expectDeliveries(peer, expected)
  const own = process.cpuUsage()
  const start = performance.now()
  const arrived = nextMessage<DeliveryResponses>(peer)
  const pending = ports.values()
  async function postOneByOne(): Promise<void> {
    for (const port of pending) {
      const response = await agent.request({
        origin: `http://127.0.0.1:${port}`,
        path: '/receive/public',
        method: 'POST',
        headers: { 'content-type': 'application/magic-envelope+xml' },
        body,
      })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT_BARE_REQUESTS }, postOneByOne))
  const { responses } = await arrived
  const seconds = (performance.now() - start) / 1_000
  const { user, system } = process.cpuUsage(own)
  await agent.close()
  return { seconds, cpu: { bare: (user + system) / ports.length }, responses, left: 0 }
}

/** One post to five thousand pods of which a fifth is dead, and in the meantime posts to twenty other pods. */
async function* measureDeadPods(setup: DeliverySetup): AsyncGenerator<Result> {
  const { services, queue, ports, rounds } = setup
  const { answering, hanging } = FAN_OUT
  const podsOfFanOut = answering + hanging
  const author = await addAuthorWithReaders(services, 'ida', [...ports.slice(0, podsOfFanOut), ...REFUSING_PORTS])
  const other = await addAuthorWithReaders(services, 'jan', ports.slice(podsOfFanOut))
  // Every ninth pod hangs, so that hanging pods are distributed over all pods.
  const hangingIndexes = Array.from({ length: hanging }, (_, index) => index * Math.floor(podsOfFanOut / hanging))
  const otherDeliveries = OTHER_PODS * OTHER_POSTS
  const expected = { deliveries: answering + otherDeliveries, hanging: hangingIndexes, closesConnections: true }
  const fanOutLatencies: number[] = []
  const otherLatencies: number[] = []
  const costs: Pick<DeliveryRun, 'cpu'>[] = []
  let isCorrect = true
  for (let round = -1; round < rounds; round += 1) {
    await resetPods(services)
    const committed: number[] = []
    let began = 0
    const { responses, left, cpu } = await measureDeliveries(setup, expected, async () => {
      await publish(setup, author)
      began = Date.now()
      for (let post = 0; post < OTHER_POSTS; post += 1) {
        await pause(OTHER_POST_INTERVAL_MS)
        await publish(setup, other)
        committed.push(Date.now())
      }
    })
    isCorrect &&= Number(left) === hanging + FAN_OUT.refusing
    if (round < 0) continue
    costs.push({ cpu })
    fanOutLatencies.push(...responses.flatMap(([index, at]) => (index < podsOfFanOut ? [at - began] : [])))
    otherLatencies.push(...latenciesOfOther(responses, podsOfFanOut, committed))
  }
  const results = [
    [`fan-out to 5000 pods, 20 % dead, ${queue}`, fanOutLatencies, {}],
    [`post to ${OTHER_PODS} pods during it, ${queue}`, otherLatencies, { floor: FLOORS.deliveries.duringFanOut }],
  ] as const
  for (const [name, milliseconds, floor] of results) {
    const latency = latencyOf(milliseconds)
    const result = {
      bench: 'deliveries',
      case: name,
      unit: 'ms',
      rounds,
      spread: 0,
      cpu_us: medianCpu(costs),
      ok: isCorrect,
    }
    yield {
      ...result,
      value: latency.p99,
      limit: MAX_LATENCY_MS,
      ratio: MAX_LATENCY_MS / latency.p99,
      ...floor,
      latency_ms: { delivered: latency },
    }
  }
}

/** Resets all pods: no deliveries, no failures, and a recent response. */
async function resetPods({ db }: OpenServices): Promise<void> {
  await db('deliveries').delete()
  await db('pods').update({ failures: 0, nextTryAt: null, offlineSince: null, lastSuccessAt: new Date() })
}

/** Latencies of the other posts. The posts of a person arrive in order. */
function latenciesOfOther(
  responses: DeliveryResponses['responses'],
  firstIndex: number,
  committed: readonly number[],
): readonly number[] {
  const posts = new Map<number, number>()
  return responses.flatMap(([index, at]) => {
    if (index < firstIndex) return []
    const post = posts.get(index) ?? 0
    posts.set(index, post + 1)
    return [at - (committed[post] ?? Number.NaN)]
  })
}

/** Comments of a remote person under one local post. The subscribing pods keep their connections open. */
async function measureComments(setup: DeliverySetup): Promise<Result> {
  const { services, queue, ports, stores, comments, worker } = setup
  const author = await addAuthorWithReaders(services, 'kai', ports.slice(0, SUBSCRIBING_PODS))
  await services.db('pods').update({ answeredAt: new Date() })
  const deliveries = comments * SUBSCRIBING_PODS
  const expected = { deliveries, hanging: [], closesConnections: false }
  let megabytes = 0
  const sampler = setInterval(() => {
    megabytes = Math.max(megabytes, memoryOf(worker.pid ?? Number.NaN))
  }, POLL_INTERVAL_MS)
  let sent: DeliveryRun | undefined
  const statements = await countStatements(stores.superuserUrl, async () => {
    const guids = await addComments(services, author, ports[SUBSCRIBING_PODS] ?? Number.NaN, comments)
    sent = await measureDeliveries(setup, expected, () =>
      services.db.transaction((transaction) =>
        enqueueJobsOfKind(services, transaction, dispatchRelaysJob, relaysOf(guids)),
      ),
    )
  })
  clearInterval(sampler)
  await keepStatements(setup, `comments-${queue}`, statements)
  return {
    bench: 'deliveries',
    case: `${comments} comments for ${SUBSCRIBING_PODS} pods, ${queue}`,
    value: deliveries / (sent?.seconds ?? Number.NaN),
    unit: 'deliveries/s',
    rounds: 1,
    spread: 0,
    cpu_us: sent?.cpu ?? {},
    statements: statements.count / deliveries,
    more: { worker_megabytes: Math.round(megabytes) },
    ok: Number(sent?.left) === 0,
  }
}

/** Adds comments by a person of the pod at this port under a new post, and returns their guids. */
async function addComments(
  { db }: OpenServices,
  author: Author,
  port: number,
  count: number,
): Promise<readonly string[]> {
  const { rows } = await db.raw(
    `with pod as (
       insert into pods (host, port) values ('127.0.0.1', :port)
       on conflict (host, port) do update set last_success_at = now()
       returning id, port
     ), commenter as (
       insert into people (guid, address, pod_id, public_key)
       select md5(random()::text), md5(random()::text) || '@127.0.0.1:' || port, id, 'none' from pod
       returning id
     ), post as (
       insert into posts (guid, author_id, type, public, text)
       values (md5(random()::text), :authorId, 'StatusMessage', true, 'a post')
       returning id
     )
     insert into comments (guid, post_id, author_id, text, author_signature)
     select md5(random()::text), post.id, commenter.id, repeat('Good morning. ', 10), repeat('A', 684)
     from post, commenter, generate_series(1, :count)
     returning guid ${BENCH_MARKER}`,
    { port, authorId: author.personId, count },
  )
  return rows.map(({ guid }: { guid: string }) => guid)
}

function relaysOf(guids: readonly string[]) {
  return inChunks(guids, RELAYS_IN_JOB).map((chunk) => ({
    relays: chunk.map((guid) => ({ record: 'comment' as const, guid })),
  }))
}
