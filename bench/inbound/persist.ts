import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { authorise } from '../../src/federation/inbound/authorise.js'
import type { VerifiedMessage } from '../../src/federation/inbound/batch.js'
import { commitBatch } from '../../src/federation/inbound/commit/commit-batch.js'
import { openEnvelopes } from '../../src/federation/inbound/open-envelopes.js'
import { resolveReferences } from '../../src/federation/inbound/resolve-references.js'
import type { ReceivableEntity } from '../../src/protocol/entities/registry.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { type BenchStores, openAvailableStores } from '../machine/bench-stores.js'
import { insertsPerSecond } from '../machine/machine.js'
import { processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import { firstMessages, type InboundCorpus, inboundCorpus } from './inbound-corpus.js'
import { areCountsCorrect, environmentOf, prepareDatabase, resetRows } from './inbound-pod.js'

const BITS = 4096
const WRITERS = 4
/** Envelopes that a worker opens at a time. */
const OPENED_ENVELOPE_BATCH_SIZE = 256
const REPEAT_INTERVAL = 20
/**
 * Batch sizes, and the messages of a round: fewer for small batches, which take longer. The largest size has enough batches
 * that idle writers at the end of a round do not change the result.
 */
const SIZES = [
  { size: 1, count: 600 },
  { size: 8, count: 2_000 },
  { size: 64, count: 6_000 },
  { size: 256, count: 12_000, floor: FLOORS.persist },
] as const

const MAX_MESSAGES = Math.max(...SIZES.map(({ count }) => count))

type Messages = readonly VerifiedMessage<ReceivableEntity>[]

interface Round {
  readonly perSecond: number
  readonly limit: number
  readonly cpu: Readonly<Record<string, number>>
  readonly ok: boolean
}

/** Verified messages from the lookup of their references to the commit, compared with inserts of 128 plain rows. */
export async function* benchPersist({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const stores = await openAvailableStores()
  const crypto = openCryptoPool()
  const services = await openServices(readConfig(environmentOf(stores)), 'worker', {
    crypto,
    log: pino({ level: 'silent' }),
  })
  try {
    const corpus = await inboundCorpus(BITS)
    await prepareDatabase(services.db, corpus)
    const messages = await openCorpus(services, firstMessages(corpus, MAX_MESSAGES))
    for (const { size, count, ...floor } of SIZES) {
      const measuredRounds: Round[] = []
      const part = firstMessages(corpus, count)
      for (let round = -1; round < rounds; round += 1) {
        const measuredRound = await measureRound(services, stores, part, { messages, size })
        if (round >= 0) measuredRounds.push(measuredRound) // the first round plans the statements
      }
      yield { ...resultOf(size, measuredRounds), ...floor }
    }
  } finally {
    await services.close()
    await crypto.close()
    await stores.close()
  }
}

async function openCorpus(services: OpenServices, { messages }: InboundCorpus): Promise<Messages> {
  const acceptedAt = new Date()
  const verified: VerifiedMessage<ReceivableEntity>[] = []
  for (let opened = 0; opened < messages.length; opened += OPENED_ENVELOPE_BATCH_SIZE) {
    const part = messages.slice(opened, opened + OPENED_ENVELOPE_BATCH_SIZE)
    const { ready } = await openEnvelopes(
      services,
      part.map(({ envelope }) => ({ envelope, acceptedAt })),
    )
    verified.push(...ready)
  }
  return verified
}

async function measureRound(
  services: OpenServices,
  stores: BenchStores,
  corpus: InboundCorpus,
  { messages, size }: { readonly messages: Messages; readonly size: number },
): Promise<Round> {
  await resetRows(services.db, corpus)
  const sent = messages
    .slice(0, corpus.messages.length)
    .flatMap((message, index) => (index % REPEAT_INTERVAL === 0 ? [message, message] : [message]))
  const batches = Array.from({ length: Math.ceil(sent.length / size) }, (_, index) =>
    sent.slice(index * size, (index + 1) * size),
  )
  const limit = await insertsPerSecond(services.db)
  const pids = { node: process.pid, ...stores.pids }
  const before = processorTimesOf(pids)
  const start = performance.now()
  let failures = 0
  const storeBatches = async () => {
    for (let batch = batches.shift(); batch !== undefined; batch = batches.shift()) {
      await storeBatch(services, batch).catch(() => {
        failures += 1
      })
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, storeBatches))
  const seconds = (performance.now() - start) / 1_000
  const after = processorTimesOf(pids)
  return {
    perSecond: sent.length / seconds,
    limit,
    cpu: timePerMessage(sent.length, before, after),
    ok: failures === 0 && (await areCountsCorrect(services.db, corpus)),
  }
}

async function storeBatch(services: OpenServices, messages: Messages): Promise<void> {
  const resolved = await resolveReferences(services, messages)
  const { ready } = authorise(resolved.ready)
  await commitBatch(services, { ready, waiting: resolved.waiting, rejected: [], ignored: [] })
}

function resultOf(size: number, rounds: readonly Round[]): Result {
  const rates = rounds.map(({ perSecond }) => perSecond)
  return {
    bench: 'persist',
    case: `batches of ${size}, ${WRITERS} writers`,
    value: median(rates),
    unit: 'msg/s',
    limit: median(rounds.map(({ limit }) => limit)),
    ratio: median(rounds.map(({ perSecond, limit }) => perSecond / limit)),
    rounds: rounds.length,
    spread: spreadOf(rates),
    cpu_us: medianCpu(rounds),
    ok: rounds.every(({ ok }) => ok),
  }
}
