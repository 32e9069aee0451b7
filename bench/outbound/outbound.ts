import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, publicEncrypt } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { pino } from 'pino'
import { Agent } from 'undici'
import { readConfig } from '../../src/config/config.js'
import { dispatchInOrder } from '../../src/federation/outbound/dispatch.js'
import { dispatchJob } from '../../src/jobs/definitions.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/enqueue-jobs.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { maintenanceHandlers } from '../../workers/handlers/maintenance.js'
import { outboundHandlers, outboundSlowHandlers } from '../../workers/handlers/outbound.js'
import { startWorkers } from '../../workers/start-workers.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, median, type Result } from '../bench.js'
import { FLOORS } from '../floors.js'
import { type BenchStores, openEachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { forkFile, nextMessage } from '../machine/child-process.js'
import { rateOf } from '../machine/processor-time.js'
import { type Audience, addAuthor, addPosts } from './author.js'
import { measureDeliveries, type Round, resultOf } from './delivery-rounds.js'
import type { SinkCount, SinkReady, SinkTask } from './delivery-sink.js'
import { countSignatures, measureHangingPods } from './fanout.js'

const THREADS = 2
const PUBLIC_POSTS = 20
const PRIVATE_POSTS = 2
const PEOPLE_ON_EACH_POD = 5
const MAX_CONCURRENT_PER_POD = 4
const PODS_OF_FANOUT = 5_000
const CASES = ['kinds', 'hanging', 'dispatch']

/** From the outbox rows of posts to the last delivery, compared with bare POST requests of the same bytes to the same pods. */
export async function* benchOutbound({ rounds, queues, cases = CASES }: BenchOptions): AsyncGenerator<Result> {
  const sink = forkFile('outbound/delivery-sink')
  try {
    const { ports } = await nextMessage<SinkReady>(sink)
    for await (const { queue, stores } of openEachStore({}, queues)) {
      yield* measureStore({ queue, stores, sink, ports, rounds, cases })
    }
  } finally {
    sink.kill()
  }
}

interface Setting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly sink: ChildProcess
  readonly ports: readonly number[]
  readonly rounds: number
  /** The parts of the bench that run. */
  readonly cases: readonly string[]
}

async function* measureStore(setting: Setting): AsyncGenerator<Result> {
  const threads = openCryptoPool(THREADS)
  const { crypto, countSigned } = countSignatures(threads)
  const config = readConfig({
    POD_URL: 'http://127.0.0.1:1',
    DATABASE_URL: setting.stores.databaseUrl,
    REDIS_URL: setting.stores.redisUrl,
    SECRET_KEY: 'a key that is only good for benches',
    ALLOW_PRIVATE_ADDRESSES: 'true',
  })
  const services = await openServices(config, 'worker', { crypto, log: pino({ level: 'silent' }) })
  try {
    const workers = startWorkers(services, {
      queues: ['outbound', 'outbound-slow', 'maintenance'],
      handlers: {
        outbound: outboundHandlers,
        'outbound-slow': outboundSlowHandlers,
        maintenance: maintenanceHandlers,
      },
    })
    try {
      for (const kind of setting.cases.includes('kinds') ? kinds : []) yield measureKind(services, setting, kind)
      if (setting.cases.includes('hanging')) yield* await measureHangingPods(services, { ...setting, countSigned })
    } finally {
      await workers.close()
    }
    if (setting.cases.includes('dispatch')) yield measureFanout(services, setting)
  } finally {
    await services.close()
    await threads.close()
  }
}

interface Kind extends Audience {
  readonly name: string
  readonly public: boolean
  readonly posts: number
  readonly floor?: number
}

const privateKind = { public: false, posts: PRIVATE_POSTS, peopleOnEachPod: PEOPLE_ON_EACH_POD }
const kinds: readonly Kind[] = [
  {
    name: 'public',
    author: 'ann',
    public: true,
    posts: PUBLIC_POSTS,
    peopleOnEachPod: 1,
    bits: 2048,
    floor: FLOORS.outbound.public,
  },
  { ...privateKind, name: 'private rsa2048', author: 'ben', bits: 2048 },
  { ...privateKind, name: 'private rsa4096', author: 'cat', bits: 4096, floor: FLOORS.outbound.private },
]

async function measureKind(services: OpenServices, setting: Setting, kind: Kind): Promise<Result> {
  const { queue, sink, ports, rounds, stores } = setting
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: kind.bits })
  const author = await addAuthor(services, kind, ports, publicKey)
  const deliveries = kind.posts * ports.length * kind.peopleOnEachPod
  const measuredRounds: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const records = await addPosts(services, author, kind)
    const begin = () =>
      services.db.transaction((transaction) => enqueueJobsOfKind(services, transaction, dispatchJob, records))
    const subject = await measureDeliveries(deliveries, stores, () => waitForDeliveries(sink, deliveries, begin))
    const body = await lastDeliveryBody(services, kind, publicKey)
    const isComplete = (await waitUntilSettled(services)) && (await countReceived(sink)) === deliveries
    const bare = await measureDeliveries(deliveries, stores, () =>
      waitForDeliveries(sink, deliveries, () => postAll(ports, deliveries, body)),
    )
    // The first round warms up: connections, statements, the compiler of the JavaScript engine.
    if (round >= 0) measuredRounds.push({ subject, bare, isComplete })
  }
  const rsaPerSecond = kind.public ? undefined : rateOf(1, () => publicEncrypt(publicKey, Buffer.alloc(32)))
  return {
    ...resultOf(`${kind.name}, ${queue}`, measuredRounds, kind.floor),
    ...(rsaPerSecond !== undefined && { more: { rsa_per_second: Math.round(rsaPerSecond) } }),
  }
}

/** Starts deliveries and waits until the sink has received this number of them. */
async function waitForDeliveries(sink: ChildProcess, expect: number, begin: () => Promise<unknown>): Promise<void> {
  sink.send({ expect } satisfies SinkTask)
  const count = nextMessage<SinkCount>(sink)
  await begin()
  await count
}

/** Deliveries that the sink has received since the start of the round. More than expected means duplicates. */
async function countReceived(sink: ChildProcess): Promise<number> {
  sink.send({} satisfies SinkTask)
  return (await nextMessage<SinkCount>(sink)).received
}

/** The body of the last delivery, for the bare requests. */
async function lastDeliveryBody(services: OpenServices, { public: isPublic }: Kind, key: KeyObject): Promise<string> {
  const { envelope } = await services
    .db('outboundMessages')
    .whereNotNull('envelope')
    .orderBy('id', 'desc')
    .first('envelope')
  if (isPublic) return envelope
  const [[encryptedEnvelope = ''] = []] = await services.crypto.encryptEnvelopes([{ envelope, recipientKeys: [key] }])
  return encryptedEnvelope
}

/** Waits until no delivery is left or a pod has failed. Returns whether all deliveries were recorded as successful. */
async function waitUntilSettled(services: OpenServices): Promise<boolean> {
  for (;;) {
    const { rows } = await services.db.raw(
      `select (select count(*) from deliveries) as left, (select count(*) from outbox) as work,
         (select count(*) from pods where failures > 0) as failing`,
    )
    const [{ left, work, failing }] = rows
    if (left + work === 0 || failing > 0) return failing === 0
  }
}

async function postAll(ports: readonly number[], deliveries: number, body: string): Promise<void> {
  const agent = new Agent({ pipelining: 1 })
  const deliveriesPerPod = deliveries / ports.length
  await Promise.all(
    ports.map(async (port) => {
      let left = deliveriesPerPod
      async function postOneByOne(): Promise<void> {
        while (left > 0) {
          left -= 1
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
      await Promise.all(Array.from({ length: MAX_CONCURRENT_PER_POD }, postOneByOne))
    }),
  )
  await agent.close()
}

/** The dispatch of a post to five thousand pods, compared with one statement that inserts the same rows. */
async function measureFanout(services: OpenServices, { queue, stores, rounds }: Setting): Promise<Result> {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const manyPods = Array.from({ length: PODS_OF_FANOUT }, (_, index) => index + 10_000)
  const author = await addAuthor(services, { author: 'dan', peopleOnEachPod: 1, bits: 2048 }, manyPods, publicKey)
  await services.db.raw('analyze')
  const measuredRounds: Round[] = []
  const delays = monitorEventLoopDelay({ resolution: 5 })
  delays.enable()
  for (let round = -1; round < rounds; round += 1) {
    const [record] = await addPosts(services, author, { public: true, posts: 1 })
    if (record === undefined) throw new Error('The post was not created.')
    const work = { data: record, payload: undefined, acceptedAt: undefined, finish: async () => {} }
    const subject = await measureDeliveries(PODS_OF_FANOUT, stores, () => dispatchInOrder(services, work))
    const [{ id, count }] = await countLastDeliveries(services)
    await services.db('deliveries').delete()
    const bare = await measureDeliveries(PODS_OF_FANOUT, stores, () =>
      services.db.raw(
        `insert into deliveries (message_id, pod_id)
         select ?, people.pod_id from contacts join people on people.id = contacts.person_id where user_id = ? order by 2`,
        [id, author.userId],
      ),
    )
    await services.db('deliveries').delete()
    if (round >= 0) measuredRounds.push({ subject, bare, isComplete: Number(count) === PODS_OF_FANOUT })
  }
  return {
    ...resultOf(`fan-out to ${PODS_OF_FANOUT} pods, ${queue}`, measuredRounds, FLOORS.outbound.fanout),
    more: {
      milliseconds: Math.round(median(measuredRounds.map(({ subject }) => subject.seconds)) * 1_000),
      // The longest delay of the event loop.
      blocked_ms: Math.round(delays.max / 1_000_000),
    },
  }
}

async function countLastDeliveries(services: OpenServices): Promise<[{ id: number; count: number }]> {
  const { rows } = await services.db.raw(
    `select message_id as id, count(*) from deliveries group by message_id order by message_id desc limit 1`,
  )
  return rows
}
