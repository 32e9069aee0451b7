import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/config/config.js'
import { openDatabase, WORKER_LIMITS } from '../src/persistence/database/database.js'
import { createSecrets, readSecretKey } from '../src/pod/secrets.js'
import { copyOldPod, rehearse, type TakeOverOptions, type TakeOverTarget } from '../src/take-over/take-over.js'
import { type BenchOptions, median, type Result, spreadOf } from './bench.js'
import { openBenchStores } from './bench-stores.js'
import { generateOldDatabase } from './old-database.js'
import { memoryOf } from './processor-time.js'

const MEMORY_EVERY_MS = 100

interface Round {
  readonly copy: number
  readonly build: number
  readonly whole: number
  /** The highest, in megabytes. */
  readonly memory: number
}

/**
 * The take-over of a generated pod, source and target on one server: rows of the source for each second of the first copy, of the build,
 * and of both with the comparison of the second run and the verification.
 */
export async function* benchTakeOver({ rounds, size }: BenchOptions): AsyncGenerator<Result> {
  const stores = await openBenchStores('postgresql', { settings: { max_connections: '50' } })
  if (stores === undefined) throw new Error('There is no database.')
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  try {
    const databaseOf = async (name: string) => {
      const url = new URL(stores.databaseUrl)
      const server = openDatabase({ ...WORKER_LIMITS, url: stores.superuserUrl, applicationName: 'bench' })
      await server.raw(`create database ${name} owner ${url.username}`)
      await server.destroy()
      url.pathname = `/${name}`
      return url.href
    }
    const from = await databaseOf('old')
    const old = openDatabase({
      ...WORKER_LIMITS,
      url: from,
      applicationName: 'bench',
      statementTimeout: 600_000,
      queryTimeout: 600_000,
    })
    const rows = await generateOldDatabase(old, size)
    await old.destroy()
    const measured: Round[] = []
    for (let round = 0; round < rounds; round += 1) {
      measured.push(await takeOver(from, await databaseOf(`new_${round}`), join(folder, String(round))))
    }
    for (const [name, seconds] of [
      ['copy', measured.map(({ copy }) => copy)],
      ['build', measured.map(({ build }) => build)],
      ['all steps', measured.map(({ whole }) => whole)],
    ] as const) {
      yield {
        ...{ bench: 'take-over', case: name, value: rows / median(seconds), unit: 'rows/s', rounds: measured.length },
        ...{ spread: spreadOf(seconds), cpu_us: {}, ok: rows > 0 },
        more: { rows, seconds: median(seconds), memory_megabytes: Math.max(...measured.map(({ memory }) => memory)) },
      }
    }
  } finally {
    await stores.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function takeOver(from: string, url: string, folder: string): Promise<Round> {
  const config = readConfig({
    ...{ POD_URL: 'https://old.example', DATABASE_URL: url, SECRET_KEY: 'a key that is only good for benches' },
    ...{ UPLOADS_DIR: join(folder, 'uploads'), DATA_DIR: folder },
  })
  const db = openDatabase({ ...WORKER_LIMITS, url, applicationName: 'bench' })
  const target: TakeOverTarget = { db, url, config, secrets: createSecrets(await readSecretKey(config)) }
  const options: TakeOverOptions = {
    ...{ from, uploads: undefined, uploadsMode: 'link', oidcKey: undefined, pepper: undefined, rate: undefined },
    ...{ shouldVerifyAllSignatures: false, shouldLockBrokenKeys: false, sidekiq: undefined, mayLoseJobs: false },
    ...{ signal: new AbortController().signal, report: () => undefined },
  }
  let memory = 0
  const watch = setInterval(() => {
    memory = Math.max(memory, memoryOf(process.pid) || 0)
  }, MEMORY_EVERY_MS)
  const began = performance.now()
  try {
    const copied = await copyOldPod(target, options)
    const built = await rehearse(target, options)
    return {
      copy: copied.seconds,
      build: built.buildSeconds,
      whole: (performance.now() - began) / 1_000,
      memory,
    }
  } finally {
    clearInterval(watch)
    await db.destroy()
  }
}
