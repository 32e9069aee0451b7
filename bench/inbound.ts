import { type ChildProcess, fork } from 'node:child_process'
import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { pino } from 'pino'
import { readConfig } from '../src/config.js'
import { isIdle } from '../src/jobs/queue-facts.js'
import { type OpenPod, openPod } from '../src/open-pod.js'
import { openCryptoPool } from '../workers/threads/crypto-pool.js'
import { load, openLoader } from './accept.js'
import { type BenchOptions, type Latency, latencyOf, median, type Result, spreadOf } from './bench.js'
import { type BenchStores, openBenchStores, type QueueStoreName } from './bench-stores.js'
import { type InboundCorpus, inboundCorpus } from './inbound-corpus.js'
import type { PostLoadResult } from './post-load.js'
import { memoryOf, processorTimesOf, rateOf } from './processor-time.js'

const CONNECTIONS = 64
/** Every so many messages one comes again. */
const REPEAT_EVERY = 20
/** Of what was reached at full speed; for the times of single messages. */
const UNHURRIED = 0.6
const FLOORS: Readonly<Record<QueueStoreName, Readonly<Record<number, number>>>> = {
  redis: { 4096: 0.35, 2048: 0.22 },
  postgresql: { 4096: 0.2 },
}
const TABLES = ['posts', 'comments', 'likes'] as const

/**
 * Signed envelopes from the socket to committed rows, through a web and a worker process of their own. The limit: all cores
 * do nothing but verify these signatures, and then nothing but insert rows, 128 at a time.
 */
export async function* benchInbound({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const corpora = new Map<number, InboundCorpus>()
  for (const bits of [2048, 4096] as const) corpora.set(bits, await inboundCorpus(bits))
  const loader = openLoader()
  try {
    for (const queue of ['redis', 'postgresql'] as const) {
      const stores = await openBenchStores(queue)
      if (stores === undefined) {
        process.stderr.write('There is no redis-server on the PATH, so the half with Redis is left out.\n')
        continue
      }
      try {
        for (const [bits, corpus] of corpora) {
          yield* measureCorpus({ queue, stores, loader, bits, corpus, verifyOnce: verification(bits), rounds })
        }
      } finally {
        await stores.close()
      }
    }
  } finally {
    loader.kill()
  }
}

interface Setting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly loader: ChildProcess
  readonly bits: number
  readonly corpus: InboundCorpus
  readonly verifyOnce: () => void
  readonly rounds: number
}

interface Round {
  readonly perSecond: number
  readonly limit: number
  readonly sent: PostLoadResult
  readonly messages: number
  /** Microseconds for one message, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly memory: Readonly<Record<string, number>>
  /** From request to row. */
  readonly stored: Latency
  readonly ok: boolean
}

async function* measureCorpus(setting: Setting): AsyncGenerator<Result> {
  const { stores, rounds, queue, bits } = setting
  const environment = environmentOf(stores)
  const crypto = openCryptoPool(1)
  const pod = await openPod(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const processes: PodProcess[] = []
  try {
    await prepare(pod.db, setting.corpus)
    processes.push(await startProcess('../src/server', environment), await startProcess('../workers/main', environment))
    const measured: Round[] = []
    // The first messages of a process are its slowest, so they may as well be looked at.
    const statements = await stores.countStatements('pod worker', () => measureRound(setting, pod, processes))
    for (let round = 0; round < rounds; round += 1) measured.push(await measureRound(setting, pod, processes))
    const value = median(measured.map(({ perSecond }) => perSecond))
    const unhurried = await measureRound(setting, pod, processes, value * UNHURRIED)
    yield resultOf(queue, bits, measured, unhurried, statements)
  } finally {
    for (const { child } of processes) await end(child)
    await pod.close()
    await crypto.close()
  }
}

function environmentOf({ databaseUrl, redisUrl }: BenchStores): NodeJS.ProcessEnv {
  return {
    ...process.env,
    POD_URL: 'https://pod.example',
    PORT: '0',
    ADMIN_LISTEN: '',
    LOG_LEVEL: 'error',
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl ?? '',
    SECRET_KEY: 'a key that is only good for benches',
  }
}

/** Everybody is known here, and when a row was written can be read from it. */
async function prepare(db: Knex, { people }: InboundCorpus): Promise<void> {
  for (const table of TABLES) {
    await db.raw(
      `alter table ${table} add column if not exists written_at timestamptz not null default clock_timestamp()`,
    )
  }
  await db.raw('create table if not exists bare_rows (id bigint generated always as identity primary key, text text)')
  for (const { address, guid, publicKey } of people) {
    const host = address.split('@')[1] ?? ''
    const [pod] = await db('pods').insert({ host, ssl: true }).returning('id')
    const [person] = await db('people').insert({ guid, address, publicKey, podId: pod.id }).returning('id')
    await db('profiles').insert({ personId: person.id })
  }
}

interface PodProcess {
  readonly name: 'web' | 'worker'
  readonly child: ChildProcess
  readonly port: number
}

async function startProcess(path: string, env: NodeJS.ProcessEnv): Promise<PodProcess> {
  const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const child = fork(new URL(path + ending, import.meta.url), { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const [ready]: { readonly address: string | null }[] = await once(child, 'message')
  const address = ready?.address ?? null
  return {
    name: address === null ? 'worker' : 'web',
    child,
    port: address === null ? 0 : Number(new URL(address).port),
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

async function measureRound(
  { stores, loader, corpus, verifyOnce }: Setting,
  pod: OpenPod,
  processes: readonly PodProcess[],
  perSecond?: number,
): Promise<Round> {
  const { db } = pod
  await empty(db, corpus)
  const posted = corpus.messages.flatMap((message, index) =>
    index % REPEAT_EVERY === 0 ? [message, message] : [message],
  )
  const bodies = posted.map(({ envelope }) => envelope)
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
  }
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const limit = await limitOf(db, verifyOnce, corpus)
  const before = processorTimesOf(pids)
  const pace = perSecond === undefined ? {} : { perSecond }
  const sent = await load(loader, { port, path: '/receive/public', connections: CONNECTIONS, bodies, ...pace })
  const writtenAt = await untilWritten(db, corpus)
  const after = processorTimesOf(pids)
  while (!(await isIdle(pod))) await pause(50)

  const start = sent.sentAt[0] ?? Number.NaN
  const last = Math.max(...writtenAt.values())
  const cpu = Object.keys(pids).map((name) => [name, ((after[name] ?? 0) - (before[name] ?? 0)) / bodies.length])
  const memory = Object.entries(pids).map(([name, pid]) => [`${name}_mb`, memoryOf(pid)])
  return {
    perSecond: (bodies.length * 1_000) / (last - start),
    limit,
    messages: bodies.length,
    sent,
    cpu: Object.fromEntries(cpu),
    memory: Object.fromEntries(memory),
    stored: latencyOf(timesUntilWritten(posted, sent, writtenAt)),
    ok: sent.wrong === 0 && (await isRight(pod, corpus)),
  }
}

async function empty(db: Knex, { parents, people }: InboundCorpus): Promise<void> {
  await db.raw('truncate posts, comments, likes, participations, outbox, waiting cascade')
  const addresses = people.map(({ address }) => address)
  const known = await db('people').whereIn('address', addresses).select('id', 'address')
  const ids = new Map(known.map(({ id, address }) => [address, id]))
  const rows = parents.map(({ guid, author }) => ({
    guid,
    authorId: ids.get(author),
    type: 'StatusMessage',
    public: true,
    text: 'a post',
  }))
  await db('posts').insert(rows)
  await db.raw('vacuum analyze posts, comments, likes, people, outbox')
  await db.raw('checkpoint')
}

/** Messages a second, if there were nothing but what no pod can do without. */
async function limitOf(db: Knex, verifyOnce: () => void, { signaturesOfMessage }: InboundCorpus): Promise<number> {
  const verified = rateOf(1, verifyOnce) * availableParallelism()
  const rows = await insertsPerSecond(db)
  return 1 / (signaturesOfMessage / verified + 1 / rows)
}

function verification(bits: number): () => boolean {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const bytes = randomBytes(1_024)
  const signature = sign('sha256', bytes, privateKey)
  return () => verify('sha256', bytes, publicKey, signature)
}

async function insertsPerSecond(db: Knex): Promise<number> {
  const rows = Array.from({ length: 128 }, () => ({ text: 'x'.repeat(200) }))
  const start = performance.now()
  let inserted = 0
  while (performance.now() - start < 300) {
    await db('bareRows').insert(rows)
    inserted += rows.length
  }
  const seconds = (performance.now() - start) / 1_000
  await db.raw('truncate bare_rows')
  return inserted / seconds
}

/** By guid, milliseconds since 1970. */
async function untilWritten(db: Knex, { messages, parents }: InboundCorpus): Promise<ReadonlyMap<string, number>> {
  const counted = TABLES.map((table) => `(select count(*) from ${table})`).join(' + ')
  for (;;) {
    const { rows } = await db.raw(`select ${counted} as count`)
    if (Number(rows[0].count) >= messages.length + parents.length) break
    await pause(20)
  }
  const all = TABLES.map((table) => `select guid, extract(epoch from written_at) * 1000 as ms from ${table}`)
  const { rows }: { rows: { guid: string; ms: string }[] } = await db.raw(all.join(' union all '))
  const isParent = new Set(parents.map(({ guid }) => guid))
  return new Map(rows.filter(({ guid }) => !isParent.has(guid)).map(({ guid, ms }) => [guid, Number(ms)]))
}

/** Milliseconds from the first time a message was sent to the row it became. */
function timesUntilWritten(
  posted: InboundCorpus['messages'],
  { sentAt }: PostLoadResult,
  writtenAt: ReadonlyMap<string, number>,
): readonly number[] {
  const firstSent = new Map<string, number>()
  for (const [index, { guid }] of posted.entries()) {
    if (!firstSent.has(guid)) firstSent.set(guid, sentAt[index] ?? Number.NaN)
  }
  return Array.from(writtenAt, ([guid, written]) => written - (firstSent.get(guid) ?? Number.NaN))
}

/** Every message once, every counter true, and nothing left over. */
async function isRight({ db, jobs }: OpenPod, { kinds, parents }: InboundCorpus): Promise<boolean> {
  const { rows } = await db.raw(`
    select
      (select count(*) from posts) as posts,
      (select count(*) from comments) as comments,
      (select count(*) from likes) as likes,
      (select sum(comments_count) from posts) as "countedComments",
      (select sum(likes_count) from posts) as "countedLikes",
      (select count(*) from waiting) + (select count(*) from outbox) as "leftOver"`)
  const [found] = rows
  const failed = await Promise.all((['inbound', 'inbound-private'] as const).map((queue) => jobs.counts(queue)))
  return (
    Number(found.posts) === kinds.posts + parents.length &&
    Number(found.comments) === kinds.comments &&
    Number(found.likes) === kinds.likes &&
    Number(found.countedComments) === kinds.comments &&
    Number(found.countedLikes) === kinds.likes &&
    Number(found.leftOver) === 0 &&
    failed.every((counts) => counts.failed === 0)
  )
}

function resultOf(
  queue: QueueStoreName,
  bits: number,
  rounds: readonly Round[],
  unhurried: Round,
  statements: number,
): Result {
  const rates = rounds.map(({ perSecond }) => perSecond)
  const floor = FLOORS[queue][bits]
  const names = (of: Readonly<Record<string, number>> = {}) => Object.keys(of)
  const each = (name: string) => median(rounds.map(({ cpu }) => cpu[name] ?? Number.NaN))
  return {
    bench: 'inbound',
    case: `${queue}, rsa${bits}`,
    value: median(rates),
    unit: 'msg/s',
    limit: median(rounds.map(({ limit }) => limit)),
    ratio: median(rounds.map(({ perSecond, limit }) => perSecond / limit)),
    ...(floor !== undefined && { floor }),
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: Object.fromEntries(names(rounds[0]?.cpu).map((name) => [name, each(name)])),
    latency_ms: { accepted: latencyOf(unhurried.sent.milliseconds), stored: unhurried.stored },
    more: {
      accepted_per_second: median(rounds.map(({ sent }) => sent.requests / sent.seconds)),
      statements_per_message: statements / unhurried.messages,
      ...rounds.at(-1)?.memory,
    },
    ok: [...rounds, unhurried].every(({ ok }) => ok),
  }
}
