import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { Agent, request } from 'undici'
import { readConfig } from '../../src/config/config.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import type { BenchOptions, Result } from '../bench.js'
import { type BenchStores, openEachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { endProcess } from '../machine/child-process.js'
import { firstMessages, type InboundCorpus, inboundCorpus } from './inbound-corpus.js'
import {
  countRows,
  environmentOf,
  isCorrect,
  type PodProcess,
  prepareDatabase,
  resetRows,
  startProcess,
} from './inbound-pod.js'

const BITS = 4096
const MESSAGES = 3_000
const REPEAT_INTERVAL = 20
const SENDERS = 32
/** Slow enough that each kill happens during the load. */
const PER_SECOND = 400
/** Pause before a message without a 202 is sent again. */
const RETRY_INTERVAL_MS = 50
/** Maximum wait for all jobs. Jobs of a killed worker are retried within 45 seconds, and a worker is killed twice. */
const MAX_WAIT_MS = 180_000
/** The crashes, each with the share of the messages after which it happens. */
const CRASHES = [
  { after: 0.1, target: 'worker' },
  { after: 0.4, target: 'queue' },
  { after: 0.7, target: 'worker' },
] as const

/** A burst in which the worker is killed twice and Redis once. Each message with a 202 must be stored once, with correct counters. */
export async function* benchCrash(_options: BenchOptions): AsyncGenerator<Result> {
  const corpus = firstMessages(await inboundCorpus(BITS), MESSAGES)
  for await (const { queue, stores } of openEachStore()) yield await measureCrashes(queue, stores, corpus)
}

async function measureCrashes(queue: QueueStoreName, stores: BenchStores, corpus: InboundCorpus): Promise<Result> {
  const environment = environmentOf(stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const web = await startProcess('../src/server', environment)
  let worker = await startProcess('../workers/main', environment)
  try {
    await prepareDatabase(services.db, corpus)
    await resetRows(services.db, corpus)
    const start = performance.now()
    const sending = sendAll(web, corpus)
    for (const { after, target } of CRASHES) {
      await pause(start + (after * corpus.messages.length * 1_000) / PER_SECOND - performance.now())
      if (target === 'worker') {
        worker.child.kill('SIGKILL')
        worker = await startProcess('../workers/main', environment)
      } else await stores.crashQueue?.()
    }
    const refusals = await sending
    const deadline = performance.now() + MAX_WAIT_MS
    while (!(await isIdle(services)) && performance.now() < deadline) await pause(100)
    return {
      bench: 'crash',
      case: `${queue}, rsa${BITS}`,
      value: corpus.messages.length + corpus.parents.length - (await countRows(services.db)),
      unit: 'lost',
      rounds: 1,
      spread: 0,
      cpu_us: {},
      more: { messages: corpus.messages.length, refusals, seconds: (performance.now() - start) / 1_000 },
      ok: await isCorrect(services, corpus),
    }
  } finally {
    await endProcess(web.child)
    await endProcess(worker.child)
    await services.close()
    await crypto.close()
  }
}

/** Sends all messages, and repeats those without a 202 as other pods do. Returns the number of refusals. */
async function sendAll({ port }: PodProcess, { messages }: InboundCorpus): Promise<number> {
  const bodies = messages.flatMap(({ envelope }, index) =>
    index % REPEAT_INTERVAL === 0 ? [envelope, envelope] : [envelope],
  )
  const agent = new Agent({ connections: SENDERS })
  const url = `http://127.0.0.1:${port}/receive/public`
  const headers = { 'content-type': 'application/magic-envelope+xml' }
  const start = performance.now()
  let sent = 0
  let refusals = 0

  async function isAccepted(body: string): Promise<boolean> {
    try {
      const response = await request(url, { dispatcher: agent, method: 'POST', headers, body })
      await response.body.dump()
      return response.statusCode === 202
    } catch {
      return false
    }
  }

  async function send(): Promise<void> {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) {
      await pause(start + (sent * 1_000) / PER_SECOND - performance.now())
      sent += 1
      while (!(await isAccepted(body))) {
        refusals += 1
        await pause(RETRY_INTERVAL_MS)
      }
    }
  }

  await Promise.all(Array.from({ length: SENDERS }, send))
  await agent.close()
  return refusals
}
