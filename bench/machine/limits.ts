import { constants, createPrivateKey, privateDecrypt, randomBytes, sign } from 'node:crypto'
import { Redis } from 'ioredis'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { startProcess } from '../inbound/inbound-pod.js'
import { load, openLoader } from '../load/post-loader.js'
import { openEitherStore } from './bench-stores.js'
import { insertsPerSecond, makeBareTable, openMachine } from './machine.js'
import { rateOf } from './processor-time.js'
import { makeSigned } from './signed.js'

const CONNECTIONS = 64
const MILLISECONDS = 1_000
const MAX_CONCURRENT_EVALS = 64

/** Baselines of this machine: the other benches are compared with them, and they have no target of their own. */
export async function* benchLimits({ rounds }: BenchOptions): AsyncGenerator<Result> {
  for (const bits of [2048, 4096]) yield* rsa(bits, rounds)
  const machine = openMachine()
  try {
    for (const bits of [2048, 4096]) {
      yield await result(`verify rsa${bits}, all cores`, '1/s', rounds, () => machine.verifications(bits))
    }
  } finally {
    machine.close()
  }
  yield* stores(rounds)
  yield await barePost(rounds)
}

async function* rsa(bits: number, rounds: number): AsyncGenerator<Result> {
  const { privateKey: made, bytes, verifyOnce } = makeSigned(bits)
  const privateKey = createPrivateKey(made.export({ type: 'pkcs8', format: 'pem' }))
  const wrapped = Buffer.concat([Buffer.alloc(1), randomBytes(bits / 8 - 1)])
  const operations = {
    verify: verifyOnce,
    sign: () => sign('sha256', bytes, privateKey),
    decrypt: () => privateDecrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, wrapped),
  }
  for (const [name, operation] of Object.entries(operations)) {
    yield await result(`${name} rsa${bits}`, '1/s/core', rounds, async () => rateOf(1, operation))
  }
}

async function* stores(rounds: number): AsyncGenerator<Result> {
  const opened = await openEitherStore()
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: opened.databaseUrl, applicationName: 'bench' })
  try {
    await makeBareTable(db)
    yield await result('insert of 128 rows', 'rows/s', rounds, () => insertsPerSecond(db))
    const { redisUrl } = opened
    if (redisUrl !== undefined) yield await result('EVAL INCR in Redis', '1/s', rounds, () => evalsPerSecond(redisUrl))
  } finally {
    await db.destroy()
    await opened.close()
  }
}

async function evalsPerSecond(redisUrl: string): Promise<number> {
  const redis = new Redis(redisUrl)
  const start = performance.now()
  let done = 0
  while (performance.now() - start < MILLISECONDS / 2) {
    const evals = Array.from({ length: MAX_CONCURRENT_EVALS }, () =>
      redis.eval(`return redis.call('INCR', KEYS[1])`, 1, 'n'),
    )
    await Promise.all(evals)
    done += MAX_CONCURRENT_EVALS
  }
  const seconds = (performance.now() - start) / 1_000
  redis.disconnect()
  return done / seconds
}

async function barePost(rounds: number): Promise<Result> {
  const { child, port } = await startProcess('load/bare-route', process.env)
  const loader = openLoader()
  const bodies = ['x'.repeat(2_200)]
  const task = { port, path: '/receive/public', connections: CONNECTIONS, bodies, milliseconds: MILLISECONDS }
  try {
    return await result('bare POST', '1/s', rounds, async () => {
      const { requests, seconds } = await load(loader, task)
      return requests / seconds
    })
  } finally {
    loader.kill()
    child.kill()
  }
}

async function result(name: string, unit: string, rounds: number, once: () => Promise<number>): Promise<Result> {
  const values: number[] = []
  for (let round = 0; round < rounds; round += 1) values.push(await once())
  return {
    bench: 'limits',
    case: name,
    value: median(values),
    unit,
    rounds,
    spread: spreadOf(values),
    cpu_us: {},
    ok: true,
  }
}
