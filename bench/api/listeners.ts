import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { findViewer } from '../../src/domain/accounts/viewers.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishLiveEvents } from '../../src/domain/notifications/enqueue-live-events.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Person } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { openBenchStores } from '../machine/bench-stores.js'
import { end } from '../machine/child-process.js'
import { memoryOf, processorTimesOf } from '../machine/processor-time.js'

const USERS = 50
const STREAMS_OF_USER = 20
const LISTENERS = USERS * STREAMS_OF_USER
/** Sends a heartbeat to every listener. */
const WATCHED_MS = 20_500
const SETTLED_MS = 3_000
const AN_HOUR = 3_600
/** Of the others: one of these takes most of a minute. */
const PART_OF_ROUNDS = 1 / 3
const SECRET_KEY = 'a key that is only good for benches'

/** What a thousand clients cost that do nothing but listen: memory and processor time of the web process, with them and without. */
export async function* benchListeners({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const stores = await openBenchStores('postgresql', { fast: true })
  if (stores === undefined) throw new Error('The embedded database is always there.')
  const settings = { POD_URL: 'https://pod.example', DATABASE_URL: stores.databaseUrl, SECRET_KEY }
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(settings), 'command', { crypto, log: pino({ level: 'silent' }) })
  try {
    const tokens = await tokensOf(services)
    const measured: Round[] = []
    for (let round = 0; round < rounds * PART_OF_ROUNDS; round += 1)
      measured.push(await measure(services, settings, tokens))
    yield* resultsOf(measured)
  } finally {
    await services.close()
    await crypto.close()
    await stores.close()
  }
}

interface Cost {
  /** Of memory. */
  readonly megabytes: number
  /** Of processor time, in a second. */
  readonly milliseconds: number
}

interface Round {
  readonly without: Cost
  readonly with: Cost
  readonly ok: boolean
}

/** Tokens of new users without contacts and with dummy keys: real ones would take minutes. */
async function tokensOf(services: OpenServices): Promise<readonly string[]> {
  const tokens: string[] = []
  for (let number = 1; number <= USERS; number += 1) {
    const username = `person${number}`
    await services.db.transaction(async (transaction) => {
      const guid = newGuid()
      const person = await Person.insertWithProfile(transaction, {
        guid,
        address: `${username}@pod.example`,
        publicKey: username,
      })
      const user = await User.query(transaction).insert({ username, personId: person.id }).returning('*')
      const secrets = { passwordHash: 'none', sealedPrivateKey: services.secrets.encrypt('none', `user ${user.id}`) }
      await user.$relatedQuery('secrets', transaction).insert(secrets)
    })
    tokens.push((await mintToken(services, username, { scopes: SCOPES, lifetime: AN_HOUR })).accessToken)
  }
  return tokens
}

async function measure(services: OpenServices, settings: NodeJS.ProcessEnv, tokens: readonly string[]): Promise<Round> {
  await using web = await startWeb(settings)
  const without = await costOf(web.pid)
  const streams = tokens.flatMap((token) => Array.from({ length: STREAMS_OF_USER }, () => openStream(web.port, token)))
  try {
    await Promise.all(streams.map(({ placed }) => placed))
    const withThem = await costOf(web.pid)
    const areOpen = streams.every(({ socket }) => !socket.destroyed)
    return { without, with: withThem, ok: areOpen && (await isToldToOneUser(services, tokens[0] ?? '', streams)) }
  } finally {
    for (const { socket } of streams) socket.destroy()
  }
}

/** Of a process that has come to rest. */
async function costOf(pid: number): Promise<Cost> {
  await pause(SETTLED_MS)
  const before = processorTimesOf({ web: pid })['web'] ?? Number.NaN
  await pause(WATCHED_MS)
  const spent = (processorTimesOf({ web: pid })['web'] ?? Number.NaN) - before
  return { megabytes: memoryOf(pid), milliseconds: spent / WATCHED_MS }
}

/** Whether a post reaches all streams of its author, and no others. */
async function isToldToOneUser(services: OpenServices, token: string, streams: readonly Stream[]): Promise<boolean> {
  const viewer = await findViewer(services, token)
  if (viewer === undefined) throw new Error('The token was made a moment ago.')
  const { id } = await publishPost(services, viewer, { text: 'Is anybody listening?', public: true })
  const row = { queue: 'notify', name: 'announce', data: JSON.stringify({ posts: [id] }) }
  const rows = await services.db('outbox').insert(row).returning('id')
  await publishLiveEvents(
    services,
    rows.map((written) => written.id),
  )
  await pause(SETTLED_MS)
  return streams.every(({ events }, index) => events() === (index < STREAMS_OF_USER ? 1 : 0))
}

function* resultsOf(measured: readonly Round[]): Generator<Result> {
  const kilobytes = measured.map((round) => ((round.with.megabytes - round.without.megabytes) * 1_024) / LISTENERS)
  const share = measured.map((round) => round.with.milliseconds)
  const common = { bench: 'listeners', rounds: measured.length, cpu_us: {}, ok: measured.every(({ ok }) => ok) }
  const memory = (which: 'with' | 'without') => median(measured.map((round) => round[which].megabytes))
  yield {
    ...common,
    case: `memory of each of ${LISTENERS} listeners`,
    value: median(kilobytes),
    unit: 'KB',
    spread: spreadOf(kilobytes),
    more: { 'MB without': memory('without'), 'MB with': memory('with') },
  }
  yield {
    ...common,
    case: `processor time with ${LISTENERS} listeners`,
    value: median(share),
    unit: 'ms/s',
    spread: spreadOf(share),
    more: { without: median(measured.map((round) => round.without.milliseconds)) },
  }
}

interface Stream {
  readonly socket: Socket
  /** Resolves once it misses nothing any more. */
  readonly placed: Promise<void>
  events(): number
}

function openStream(port: number, token: string): Stream {
  const socket = connect({ port, host: '127.0.0.1' })
  let events = 0
  socket.write(`GET /api/v1/streaming HTTP/1.1\r\nhost: pod.example\r\nauthorization: Bearer ${token}\r\n\r\n`)
  const placed = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('A stream was closed.')))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      events += chunk.split('\nevent: ').length - 1
      if (/^id: /m.test(chunk)) resolve()
    })
  })
  placed.catch(() => undefined) // the awaiting caller gets the error
  return { socket, placed, events: () => events }
}

async function startWeb(settings: NodeJS.ProcessEnv) {
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-web-'))
  const isSource = import.meta.url.endsWith('.ts')
  const entry = new URL(isSource ? '../../src/server.ts' : '../../src/server.js', import.meta.url)
  const env = {
    PATH: process.env['PATH'],
    ...settings,
    DATA_DIR: folder,
    PORT: '0',
    ADMIN_LISTEN: '',
    LOG_LEVEL: 'silent',
  }
  const execArgv = isSource ? ['--import', import.meta.resolve('tsx')] : []
  const child = fork(entry, { cwd: folder, env, execArgv })
  const [{ address }] = (await once(child, 'message')) as [{ address: string }] // what it says first
  return {
    pid: child.pid ?? Number.NaN,
    port: Number(new URL(address).port),
    async [Symbol.asyncDispose]() {
      await end(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
