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
import { type BenchStores, eachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { forkFile, said } from '../machine/child-process.js'
import { rateOf } from '../machine/processor-time.js'
import { type Audience, addAuthor, addPosts } from './author.js'
import { type Round, resultOf, spentOn } from './delivery-rounds.js'
import type { SinkCount, SinkReady, SinkTask } from './delivery-sink.js'
import { countSignatures, measureHangingPods } from './fanout.js'

const THREADS = 2
const POSTS_FOR_ALL = 20
const POSTS_FOR_SOME = 2
const PEOPLE_ON_EACH_POD = 5
const MAX_CONCURRENT_PER_POD = 4
const PODS_OF_FANOUT = 5_000
const CASES = ['kinds', 'hanging', 'dispatch']

/** From the outbox rows of posts to the last pod that has them, beside bare POSTs of the same bytes to the same pods. */
export async function* benchOutbound({ rounds, queues, cases = CASES }: BenchOptions): AsyncGenerator<Result> {
  const sink = forkFile('outbound/delivery-sink')
  try {
    const { ports } = await said<SinkReady>(sink)
    for await (const { queue, stores } of eachStore({}, queues)) {
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
  const { crypto, made } = countSignatures(threads)
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
      if (setting.cases.includes('hanging')) yield* await measureHangingPods(services, { ...setting, made })
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

const forSome = { public: false, posts: POSTS_FOR_SOME, peopleOnEachPod: PEOPLE_ON_EACH_POD }
const kinds: readonly Kind[] = [
  {
    name: 'public',
    author: 'ann',
    public: true,
    posts: POSTS_FOR_ALL,
    peopleOnEachPod: 1,
    bits: 2048,
    floor: FLOORS.outbound.public,
  },
  { ...forSome, name: 'private rsa2048', author: 'ben', bits: 2048 },
  { ...forSome, name: 'private rsa4096', author: 'cat', bits: 4096, floor: FLOORS.outbound.private },
]

async function measureKind(services: OpenServices, setting: Setting, kind: Kind): Promise<Result> {
  const { queue, sink, ports, rounds, stores } = setting
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: kind.bits })
  const author = await addAuthor(services, kind, ports, publicKey)
  const deliveries = kind.posts * ports.length * kind.peopleOnEachPod
  const measured: Round[] = []
  for (let round = -1; round < rounds; round += 1) {
    const records = await addPosts(services, author, kind)
    const begin = () =>
      services.db.transaction((transaction) => enqueueJobsOfKind(services, transaction, dispatchJob, records))
    const subject = await spentOn(deliveries, stores, () => taken(sink, deliveries, begin))
    const body = await lastBody(services, kind, publicKey)
    const isComplete = (await untilSettled(services)) && (await takenInAll(sink)) === deliveries
    const bare = await spentOn(deliveries, stores, () =>
      taken(sink, deliveries, () => postAll(ports, deliveries, body)),
    )
    // The first round warms up: connections, statements, the compiler of the JavaScript engine.
    if (round >= 0) measured.push({ subject, bare, isComplete })
  }
  const encrypted = kind.public ? undefined : rateOf(1, () => publicEncrypt(publicKey, Buffer.alloc(32)))
  return {
    ...resultOf(`${kind.name}, ${queue}`, measured, kind.floor),
    ...(encrypted !== undefined && { more: { rsa_per_second: Math.round(encrypted) } }),
  }
}

/** Resolves when the sink has taken so many deliveries that follow from `begin`. */
async function taken(sink: ChildProcess, expect: number, begin: () => Promise<unknown>): Promise<void> {
  sink.send({ expect } satisfies SinkTask)
  const all = said<SinkCount>(sink)
  await begin()
  await all
}

/** How many it has received in all since then: one too many would have been sent twice. */
async function takenInAll(sink: ChildProcess): Promise<number> {
  sink.send({} satisfies SinkTask)
  return (await said<SinkCount>(sink)).taken
}

/** What one of the deliveries has carried, for the bare ones. */
async function lastBody(services: OpenServices, { public: isPublic }: Kind, key: KeyObject): Promise<string> {
  const { envelope } = await services
    .db('outboundMessages')
    .whereNotNull('envelope')
    .orderBy('id', 'desc')
    .first('envelope')
  if (isPublic) return envelope
  const [[encryptedEnvelope = ''] = []] = await services.crypto.encryptEnvelopes([{ envelope, recipientKeys: [key] }])
  return encryptedEnvelope
}

/** True: it is written down that everything has arrived. */
async function untilSettled(services: OpenServices): Promise<boolean> {
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
  const each = deliveries / ports.length
  await Promise.all(
    ports.map(async (port) => {
      let left = each
      async function postOneByOne(): Promise<void> {
        while (left > 0) {
          left -= 1
          const answer = await agent.request({
            origin: `http://127.0.0.1:${port}`,
            path: '/receive/public',
            method: 'POST',
            headers: { 'content-type': 'application/magic-envelope+xml' },
            body,
          })
          await answer.body.dump()
        }
      }
      await Promise.all(Array.from({ length: MAX_CONCURRENT_PER_POD }, postOneByOne))
    }),
  )
  await agent.close()
}

/** Who gets a post on five thousand pods, beside the same rows written from nothing. */
async function measureFanout(services: OpenServices, { queue, stores, rounds }: Setting): Promise<Result> {
  const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const manyPods = Array.from({ length: PODS_OF_FANOUT }, (_, index) => index + 10_000)
  const author = await addAuthor(services, { author: 'dan', peopleOnEachPod: 1, bits: 2048 }, manyPods, publicKey)
  await services.db.raw('analyze')
  const measured: Round[] = []
  const delays = monitorEventLoopDelay({ resolution: 5 })
  delays.enable()
  for (let round = -1; round < rounds; round += 1) {
    const [record] = await addPosts(services, author, { public: true, posts: 1 })
    if (record === undefined) throw new Error('there is no post')
    const work = { data: record, payload: undefined, acceptedAt: undefined, finish: async () => {} }
    const subject = await spentOn(PODS_OF_FANOUT, stores, () => dispatchInOrder(services, work))
    const [{ id, count }] = await deliveriesOfLast(services)
    await services.db('deliveries').delete()
    const bare = await spentOn(PODS_OF_FANOUT, stores, () =>
      services.db.raw(
        `insert into deliveries (message_id, pod_id)
         select ?, people.pod_id from contacts join people on people.id = contacts.person_id where user_id = ? order by 2`,
        [id, author.userId],
      ),
    )
    await services.db('deliveries').delete()
    if (round >= 0) measured.push({ subject, bare, isComplete: Number(count) === PODS_OF_FANOUT })
  }
  return {
    ...resultOf(`fan-out to ${PODS_OF_FANOUT} pods, ${queue}`, measured, FLOORS.outbound.fanout),
    more: {
      milliseconds: Math.round(median(measured.map(({ subject }) => subject.seconds)) * 1_000),
      // The longest time in which nothing else could be done, the jobs for all these pods included.
      blocked_ms: Math.round(delays.max / 1_000_000),
    },
  }
}

async function deliveriesOfLast(services: OpenServices): Promise<[{ id: number; count: number }]> {
  const { rows } = await services.db.raw(
    `select message_id as id, count(*) from deliveries group by message_id order by message_id desc limit 1`,
  )
  return rows
}
