import { constants, createPrivateKey, privateDecrypt, randomBytes, sign } from 'node:crypto'
import { Redis } from 'ioredis'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { startProcess } from '../inbound/inbound-pod.js'
import { runPostLoad, startPostLoader } from '../load/post-loader.js'
import { openAvailableStores } from './bench-stores.js'
import { insertsPerSecond, makeBareTable, openMachine } from './machine.js'
import { rateOf } from './processor-time.js'
import { makeSignedSample } from './signed-sample.js'

const CONNECTIONS = 64
const MILLISECONDS = 1_000
const MAX_CONCURRENT_EVALS = 64

/** Baselines of this machine. The limits of other benches are made of them. They have no floors. */
export async function* benchLimits({ rounds }: BenchOptions): AsyncGenerator<Result> {
  for (const bits of [2048, 4096]) yield* measureRsa(bits, rounds)
  const machine = openMachine()
  try {
    for (const bits of [2048, 4096]) {
      yield await measureCase(`verify rsa${bits}, all cores`, '1/s', rounds, () => machine.verifications(bits))
    }
  } finally {
    machine.close()
  }
  yield* measureStores(rounds)
  yield await measureBarePost(rounds)
}

async function* measureRsa(bits: number, rounds: number): AsyncGenerator<Result> {
  const { privateKey: generatedKey, bytes, verifyOnce } = makeSignedSample(bits)
  const privateKey = createPrivateKey(generatedKey.export({ type: 'pkcs8', format: 'pem' }))
  const wrapped = Buffer.concat([Buffer.alloc(1), randomBytes(bits / 8 - 1)])
  const operations = {
    verify: verifyOnce,
    sign: () => sign('sha256', bytes, privateKey),
    decrypt: () => privateDecrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, wrapped),
  }
  for (const [name, operation] of Object.entries(operations)) {
    yield await measureCase(`${name} rsa${bits}`, '1/s/core', rounds, async () => rateOf(1, operation))
  }
}

async function* measureStores(rounds: number): AsyncGenerator<Result> {
  const benchStores = await openAvailableStores()
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: benchStores.databaseUrl, applicationName: 'bench' })
  try {
    await makeBareTable(db)
    yield await measureCase('insert of 128 rows', 'rows/s', rounds, () => insertsPerSecond(db))
    const { redisUrl } = benchStores
    if (redisUrl !== undefined)
      yield await measureCase('EVAL INCR in Redis', '1/s', rounds, () => evalsPerSecond(redisUrl))
  } finally {
    await db.destroy()
    await benchStores.close()
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

async function measureBarePost(rounds: number): Promise<Result> {
  const { child, port } = await startProcess('load/bare-route', process.env)
  const loader = startPostLoader()
  const bodies = ['x'.repeat(2_200)]
  const task = { port, path: '/receive/public', connections: CONNECTIONS, bodies, milliseconds: MILLISECONDS }
  try {
    return await measureCase('bare POST', '1/s', rounds, async () => {
      const { requests, seconds } = await runPostLoad(loader, task)
      return requests / seconds
    })
  } finally {
    loader.kill()
    child.kill()
  }
}

async function measureCase(
  name: string,
  unit: string,
  rounds: number,
  measure: () => Promise<number>,
): Promise<Result> {
  const values: number[] = []
  for (let round = 0; round < rounds; round += 1) values.push(await measure())
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
