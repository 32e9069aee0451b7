import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { Agent, request } from 'undici'
import { readConfig } from '../../src/config/config.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import type { BenchOptions, Result } from '../bench.js'
import { type BenchStores, eachStore, type QueueStoreName } from '../machine/bench-stores.js'
import { end } from '../machine/child-process.js'
import { type InboundCorpus, inboundCorpus, partOf } from './inbound-corpus.js'
import { countRows, empty, environmentOf, isRight, type PodProcess, prepare, startProcess } from './inbound-pod.js'

const BITS = 4096
const TENS = 300
const REPEAT_INTERVAL = 20
const SENDERS = 32
/** Slow enough that each kill happens during the load. */
const PER_SECOND = 400
/** When the store says no, or nothing. */
const AGAIN_AFTER_MS = 50
/** Jobs of a killed worker come back within 45 seconds, and it is killed more than once. */
const PATIENCE_MS = 180_000
/** What happens when so much of all has been sent. */
const DISASTERS = [
  { after: 0.1, disaster: 'worker' },
  { after: 0.4, disaster: 'queue' },
  { after: 0.7, disaster: 'worker' },
] as const

/** A burst in which a worker dies twice and Redis once: what has its 202 is stored once, with true counters. */
export async function* benchCrash(_options: BenchOptions): AsyncGenerator<Result> {
  const corpus = partOf(await inboundCorpus(BITS), TENS)
  for await (const { queue, stores } of eachStore()) yield await crashAndCount(queue, stores, corpus)
}

async function crashAndCount(queue: QueueStoreName, stores: BenchStores, corpus: InboundCorpus): Promise<Result> {
  const environment = environmentOf(stores)
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const web = await startProcess('../src/server', environment)
  let worker = await startProcess('../workers/main', environment)
  try {
    await prepare(services.db, corpus)
    await empty(services.db, corpus)
    const start = performance.now()
    const sending = sendAll(web, corpus)
    for (const { after, disaster } of DISASTERS) {
      await pause(start + (after * corpus.messages.length * 1_000) / PER_SECOND - performance.now())
      if (disaster === 'worker') {
        worker.child.kill('SIGKILL')
        worker = await startProcess('../workers/main', environment)
      } else await stores.crashQueue?.()
    }
    const refusals = await sending
    const deadline = performance.now() + PATIENCE_MS
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
      ok: await isRight(services, corpus),
    }
  } finally {
    await end(web.child)
    await end(worker.child)
    await services.close()
    await crypto.close()
  }
}

/** As other pods do: what has no 202 is sent again. Gives how often that was so. */
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

  async function isTaken(body: string): Promise<boolean> {
    try {
      const answer = await request(url, { dispatcher: agent, method: 'POST', headers, body })
      await answer.body.dump()
      return answer.statusCode === 202
    } catch {
      return false
    }
  }

  async function send(): Promise<void> {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) {
      await pause(start + (sent * 1_000) / PER_SECOND - performance.now())
      sent += 1
      while (!(await isTaken(body))) {
        refusals += 1
        await pause(AGAIN_AFTER_MS)
      }
    }
  }

  await Promise.all(Array.from({ length: SENDERS }, send))
  await agent.close()
  return refusals
}
