import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../src/config/config.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { createSecrets, readSecretKey } from '../../src/services/secrets.js'
import {
  copyOldPod,
  examineOldPod,
  rehearse,
  type TakeOverOptions,
  type TakeOverTarget,
  verifyBuilt,
} from '../../src/take-over/take-over.js'
import { type BenchOptions, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { openBenchStores } from '../machine/bench-stores.js'
import { memoryOf, processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import { generateOldDatabase } from './old-database.js'

const MEMORY_INTERVAL_MS = 100

const STEPS = ['preflight', 'copy', 'refresh', 'build', 'verify', 'all steps'] as const
type Step = (typeof STEPS)[number]

interface Round {
  readonly seconds: Readonly<Record<Step, number>>
  /** Microseconds of processor time of all steps, by process. */
  readonly cpu: Readonly<Record<string, number>>
  /** Maximum resident memory of this process in megabytes. */
  readonly memory: number
}

/**
 * The take-over of a generated pod, with source and target on one server: source rows per second in each step, and in the first copy
 * and a rehearsal together. The processor time is per row and for all steps.
 */
export async function* benchTakeOver({ rounds, size }: BenchOptions): AsyncGenerator<Result> {
  const stores = await openBenchStores('postgresql', { settings: { max_connections: '50' } })
  if (stores === undefined) throw new Error('The embedded database did not start.')
  const folder = await mkdtemp(join(tmpdir(), 'pod-bench-'))
  try {
    const createDatabase = async (name: string) => {
      const url = new URL(stores.databaseUrl)
      const server = openDatabase({ ...WORKER_DATABASE_LIMITS, url: stores.superuserUrl, applicationName: 'bench' })
      await server.raw(`create database ${name} owner ${url.username}`)
      await server.destroy()
      url.pathname = `/${name}`
      return url.href
    }
    const from = await createDatabase('old')
    const old = openDatabase({
      ...WORKER_DATABASE_LIMITS,
      url: from,
      applicationName: 'bench',
      statementTimeoutMs: 600_000,
      queryTimeoutMs: 600_000,
    })
    const rows = await generateOldDatabase(old, size)
    await old.destroy()
    const measuredRounds: Round[] = []
    for (let round = 0; round < rounds; round += 1) {
      const url = await createDatabase(`new_${round}`)
      measuredRounds.push(await takeOver({ from, url, folder: join(folder, String(round)), pids: stores.pids }))
    }
    for (const step of STEPS) {
      const seconds = measuredRounds.map((round) => round.seconds[step])
      const cpu_us = step === 'all steps' ? perRow(medianCpu(measuredRounds), rows) : {}
      yield {
        ...{
          bench: 'take-over',
          case: step,
          value: rows / median(seconds),
          unit: 'rows/s',
          rounds: measuredRounds.length,
        },
        ...{ spread: spreadOf(seconds), cpu_us, ok: rows > 0 },
        more: {
          rows,
          seconds: median(seconds),
          memory_megabytes: Math.max(...measuredRounds.map(({ memory }) => memory)),
        },
      }
    }
  } finally {
    await stores.close()
    await rm(folder, { recursive: true, force: true })
  }
}

function perRow(cpu: Readonly<Record<string, number>>, rows: number): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(cpu).map(([name, microseconds]) => [name, microseconds / rows]))
}

interface TakeOverRun {
  readonly from: string
  readonly url: string
  readonly folder: string
  /** Process ids of the database server. */
  readonly pids: Readonly<Record<string, number>>
}

async function takeOver({ from, url, folder, pids }: TakeOverRun): Promise<Round> {
  const config = readConfig({
    ...{ POD_URL: 'https://old.example', DATABASE_URL: url, SECRET_KEY: 'a key that is only good for benches' },
    ...{ UPLOADS_DIR: join(folder, 'uploads'), DATA_DIR: folder },
  })
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url, applicationName: 'bench' })
  const target: TakeOverTarget = { db, url, config, secrets: createSecrets(await readSecretKey(config)) }
  const options: TakeOverOptions = {
    ...{ from, uploads: undefined, uploadsMode: 'link', oidcKey: undefined, pepper: undefined, rate: undefined },
    ...{ shouldVerifyAllSignatures: false, shouldLockBrokenKeys: false, sidekiq: undefined, mayLoseJobs: false },
    ...{ signal: new AbortController().signal, report: () => undefined },
  }
  let memory = 0
  const watch = setInterval(() => {
    memory = Math.max(memory, memoryOf(process.pid) || 0)
  }, MEMORY_INTERVAL_MS)
  const allPids = { ...pids, command: process.pid }
  try {
    const [preflight] = await measureSeconds(() => examineOldPod(target, options))
    const before = processorTimesOf(allPids)
    const [allSteps, { copied, built }] = await measureSeconds(async () => ({
      copied: await copyOldPod(target, options),
      built: await rehearse(target, options),
    }))
    const cpu = timePerMessage(1, before, processorTimesOf(allPids))
    const [verify] = await measureSeconds(() => verifyBuilt(target, options))
    return {
      seconds: {
        ...{ preflight, copy: copied.seconds, refresh: built.seconds, build: built.buildSeconds, verify },
        'all steps': allSteps,
      },
      cpu,
      memory,
    }
  } finally {
    clearInterval(watch)
    await db.destroy()
  }
}

/** Runs a step and returns its seconds and its result. */
async function measureSeconds<Result>(run: () => Promise<Result>): Promise<readonly [number, Result]> {
  const began = performance.now()
  const result = await run()
  return [(performance.now() - began) / 1_000, result]
}
