import { isDeepStrictEqual } from 'node:util'
import { type EnvelopeVerification, verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { type BenchOptions, median, type Result, reportSkipped, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { MICROSECONDS_PER_MEASUREMENT, type Rate, rateOf } from '../machine/processor-time.js'
import { type Command, type GemProcess, type GemTask, type Reading, startGem } from './gem-process.js'
import { type Corpus, makeCorpus } from './protocol-corpus.js'

/** Number of posts, and of comments, that are opened at a time. */
const BATCH = 64

/** Opening of envelopes on one core, compared with the Ruby gem of diaspora*. */
export async function* benchPeer({ rounds }: BenchOptions, command?: Command): AsyncGenerator<Result> {
  const gem = await startGem(command)
  if (gem === undefined) return reportSkipped('There is no ruby with the gem diaspora_federation', 'everything')
  try {
    for (const bits of [2048, 4096]) yield await compareWithGem(gem, makeCorpus(bits, BATCH), bits, rounds)
  } finally {
    await gem.close()
  }
}

/** Opens the same envelopes with the pod and with the gem in turns, and compares their processor time. */
export async function compareWithGem(gem: GemProcess, corpus: Corpus, bits: number, rounds: number): Promise<Result> {
  const task = taskOf(corpus)
  const receivedAt = new Date()
  const values: Rate[] = []
  const limits: Rate[] = []
  let opened: readonly EnvelopeVerification[] = []
  let ok = true
  const open = () => {
    opened = task.envelopes.map((envelope) => verifyEnvelope(envelope, corpus.keys, receivedAt))
  }
  // The first round warms up the compiler of the JavaScript engine.
  for (let round = -1; round < rounds; round++) {
    const value = rateOf(task.envelopes.length, open)
    const result = await gem.open(task)
    ok &&= isDeepStrictEqual(result.readings, opened.map(readingOf))
    if (round < 0) continue
    values.push(value)
    limits.push((result.opened * 1_000_000) / result.microseconds)
  }
  return {
    bench: 'peer',
    case: `rsa${bits}`,
    value: median(values),
    unit: 'msg/s/core',
    limit: median(limits),
    ratio: median(values.map((value, round) => value / (limits[round] ?? Number.NaN))),
    ...(bits === 4096 && { floor: FLOORS.peer }),
    rounds,
    spread: spreadOf(values),
    cpu_us: { protocol: 1_000_000 / median(values), gem: 1_000_000 / median(limits) },
    ok,
  }
}

function taskOf({ statusMessages, comments, poster, keys }: Corpus): GemTask {
  return {
    envelopes: [...statusMessages, ...comments],
    keys: Object.fromEntries(
      [...keys].map(([address, key]) => [address, key.export({ type: 'spki', format: 'pem' }).toString()]),
    ),
    parentAuthor: poster,
    microseconds: MICROSECONDS_PER_MEASUREMENT,
  }
}

function readingOf(opened: EnvelopeVerification): Reading {
  if (opened.state !== 'verified') return { refused: opened.state }
  const { entity, signature } = opened
  if (signature === 'invalid' || !('guid' in entity)) return { refused: entity.type }
  return { author: entity.author, guid: entity.guid }
}
