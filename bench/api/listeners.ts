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
import { endProcess } from '../machine/child-process.js'
import { memoryOf, processorTimesOf } from '../machine/processor-time.js'

const USERS = 50
const STREAMS_OF_USER = 20
const LISTENERS = USERS * STREAMS_OF_USER
/** Long enough for a heartbeat to every listener. */
const MEASURED_MS = 20_500
const SETTLED_MS = 3_000
const TOKEN_LIFETIME_SECONDS = 3_600
/** Share of the rounds of other benches, because a round takes most of a minute. */
const ROUNDS_SHARE = 1 / 3
const SECRET_KEY = 'a key that is only good for benches'

/** Memory and processor time of the web process with a thousand open event streams, compared with none. */
export async function* benchListeners({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const stores = await openBenchStores('postgresql', { fast: true })
  if (stores === undefined) throw new Error('The embedded database did not start.')
  const settings = { POD_URL: 'https://pod.example', DATABASE_URL: stores.databaseUrl, SECRET_KEY }
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(settings), 'command', { crypto, log: pino({ level: 'silent' }) })
  try {
    const tokens = await createTokens(services)
    const measuredRounds: Round[] = []
    for (let round = 0; round < rounds * ROUNDS_SHARE; round += 1)
      measuredRounds.push(await measure(services, settings, tokens))
    yield* resultsOf(measuredRounds)
  } finally {
    await services.close()
    await crypto.close()
    await stores.close()
  }
}

interface Cost {
  /** Resident memory. */
  readonly megabytes: number
  /** Processor time per second. */
  readonly milliseconds: number
}

interface Round {
  readonly without: Cost
  readonly with: Cost
  readonly ok: boolean
}

/** Creates users without contacts and returns their tokens. The keys are dummies, because real ones take minutes. */
async function createTokens(services: OpenServices): Promise<readonly string[]> {
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
    tokens.push((await mintToken(services, username, { scopes: SCOPES, lifetime: TOKEN_LIFETIME_SECONDS })).accessToken)
  }
  return tokens
}

async function measure(services: OpenServices, settings: NodeJS.ProcessEnv, tokens: readonly string[]): Promise<Round> {
  await using web = await startWeb(settings)
  const without = await costOf(web.pid)
  const streams = tokens.flatMap((token) => Array.from({ length: STREAMS_OF_USER }, () => openStream(web.port, token)))
  try {
    await Promise.all(streams.map(({ ready }) => ready))
    const withStreams = await costOf(web.pid)
    const areOpen = streams.every(({ socket }) => !socket.destroyed)
    return { without, with: withStreams, ok: areOpen && (await reachesOnlyAuthor(services, tokens[0] ?? '', streams)) }
  } finally {
    for (const { socket } of streams) socket.destroy()
  }
}

/** Cost of a process, measured after its start-up work. */
async function costOf(pid: number): Promise<Cost> {
  await pause(SETTLED_MS)
  const before = processorTimesOf({ web: pid })['web'] ?? Number.NaN
  await pause(MEASURED_MS)
  const spent = (processorTimesOf({ web: pid })['web'] ?? Number.NaN) - before
  return { megabytes: memoryOf(pid), milliseconds: spent / MEASURED_MS }
}

/** Whether the event of a post reaches all streams of its author, and no others. */
async function reachesOnlyAuthor(services: OpenServices, token: string, streams: readonly Stream[]): Promise<boolean> {
  const viewer = await findViewer(services, token)
  if (viewer === undefined) throw new Error('The new token is not valid.')
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

function* resultsOf(rounds: readonly Round[]): Generator<Result> {
  const kilobytes = rounds.map((round) => ((round.with.megabytes - round.without.megabytes) * 1_024) / LISTENERS)
  const share = rounds.map((round) => round.with.milliseconds)
  const common = { bench: 'listeners', rounds: rounds.length, cpu_us: {}, ok: rounds.every(({ ok }) => ok) }
  const memory = (which: 'with' | 'without') => median(rounds.map((round) => round[which].megabytes))
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
    more: { without: median(rounds.map((round) => round.without.milliseconds)) },
  }
}

interface Stream {
  readonly socket: Socket
  /** Resolves at the first event id: from then on no event is missed. */
  readonly ready: Promise<void>
  events(): number
}

function openStream(port: number, token: string): Stream {
  const socket = connect({ port, host: '127.0.0.1' })
  let events = 0
  socket.write(`GET /api/v1/streaming HTTP/1.1\r\nhost: pod.example\r\nauthorization: Bearer ${token}\r\n\r\n`)
  const ready = new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('A stream was closed.')))
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      events += chunk.split('\nevent: ').length - 1
      if (/^id: /m.test(chunk)) resolve()
    })
  })
  ready.catch(() => undefined) // the awaiting caller gets the error
  return { socket, ready, events: () => events }
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
  const [{ address }] = (await once(child, 'message')) as [{ address: string }] // the first message of the process
  return {
    pid: child.pid ?? Number.NaN,
    port: Number(new URL(address).port),
    async [Symbol.asyncDispose]() {
      await endProcess(child)
      await rm(folder, { recursive: true, force: true })
    },
  }
}
