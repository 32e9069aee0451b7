import { constants, privateDecrypt, randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import { decryptEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { type EnvelopeVerification, verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { Verifications } from '../load/verify-thread.js'
import { measureAlternatingRates, type Rate } from '../machine/processor-time.js'
import { makeSignedSample } from '../machine/signed-sample.js'
import { benchHostileXml } from './hostile-xml.js'
import { type Corpus, makeCorpus } from './protocol-corpus.js'

/** Opening of envelopes on one core, compared with the RSA operations that every implementation needs. */
export async function* benchProtocol({ rounds }: BenchOptions): AsyncGenerator<Result> {
  for (const bits of [2048, 4096]) {
    const corpus = makeCorpus(bits, BATCH)
    for (const openingCase of openingCasesOf(corpus, bits)) yield await measure(openingCase, rounds)
    yield await measureThreads(corpus, bits, rounds)
  }
  yield* benchHostileXml(rounds)
}

/** Number of messages that one thread gets at a time. */
const BATCH = 64
/** Private messages at a time: they take as long as hundreds of public ones. */
const PRIVATE_MESSAGE_BATCH_SIZE = 8
/** Each thread compiles its own code and reaches its full speed after some ten thousand messages. */
const WARM_UP_BATCHES = 100
const THREADS = availableParallelism()
/** Verifications of each thread at a time. */
const VERIFICATION_BATCH_SIZE = 200
const receivedAt = new Date()

interface OpeningCase {
  readonly case: string
  /** Only for the usual key length: with smaller keys the RSA operations are a smaller part of the time. */
  readonly floor?: number
  readonly messages: number
  readonly open: () => readonly EnvelopeVerification[] | Promise<readonly EnvelopeVerification[]>
  readonly limitMessages: number
  /** The RSA operations of `limitMessages` messages. */
  readonly limit: () => unknown
  /** Expected state of the author signatures. Not set: it differs between the messages. */
  readonly signature?: 'valid' | 'absent'
}

function openingCasesOf(corpus: Corpus, bits: number): readonly OpeningCase[] {
  const { statusMessages, comments, privateMessages, keys, recipientKey } = corpus
  const isUsual = bits === 4096
  const { verifyOnce } = makeSignedSample(bits)
  const open = (envelope: string) => verifyEnvelope(envelope, keys, receivedAt)
  const decrypt = (encrypted: string) => decryptEnvelope(encrypted, recipientKey) ?? ''
  const verifyTimes = (times: number) => () => {
    for (let done = 0; done < times; done++) verifyOnce()
  }
  const privateBatch = privateMessages.slice(0, PRIVATE_MESSAGE_BATCH_SIZE)
  const wrapped = Buffer.concat([Buffer.alloc(1), randomBytes(bits / 8 - 1)])

  return [
    {
      case: `unenvelop, status_message, rsa${bits}`,
      ...(isUsual && { floor: FLOORS.unenvelop }),
      messages: statusMessages.length,
      open: () => statusMessages.map(open),
      limitMessages: BATCH,
      limit: verifyTimes(BATCH),
      signature: 'absent',
    },
    {
      case: `unenvelop, relayed comment, rsa${bits}`,
      ...(isUsual && { floor: FLOORS.unenvelop }),
      messages: comments.length,
      open: () => comments.map(open),
      limitMessages: BATCH,
      limit: verifyTimes(2 * BATCH),
      signature: 'valid',
    },
    {
      case: `private, status_message, rsa${bits}`,
      ...(isUsual && { floor: FLOORS.private }),
      messages: privateBatch.length,
      // As in a worker, all envelopes are decrypted before they are verified.
      open: () => privateBatch.map(decrypt).map(open),
      limitMessages: privateBatch.length,
      limit: () =>
        privateBatch.map(() => privateDecrypt({ key: recipientKey, padding: constants.RSA_NO_PADDING }, wrapped)),
      signature: 'absent',
    },
  ]
}

/**
 * Opening of envelopes in the crypto threads, about as many at a time as in a worker: one post for four relayed comments, with nine
 * signatures. The limit is the rate of the same number of threads that only verify signatures.
 */
async function measureThreads(
  { statusMessages, comments, keys }: Corpus,
  bits: number,
  rounds: number,
): Promise<Result> {
  const envelopes = [...statusMessages.slice(0, BATCH / 4), ...comments]
  const messages = [envelopes, envelopes, envelopes].flat().map((envelope) => ({ envelope, receivedAt }))
  const signaturesOfMessage = (BATCH / 4 + 2 * comments.length) / envelopes.length
  const crypto = openCryptoPool(THREADS)
  const open = () => crypto.verifyEnvelopes(messages, keys)
  const verifiers = openVerifiers(bits)
  try {
    for (let batch = 0; batch < WARM_UP_BATCHES; batch++) await open()
    return await measure(
      {
        case: `unenvelop, threads, rsa${bits}`,
        ...(bits === 4096 && { floor: FLOORS.unenvelopInThreads }),
        messages: messages.length,
        open,
        limitMessages: (THREADS * VERIFICATION_BATCH_SIZE) / signaturesOfMessage,
        limit: verifiers.verify,
      },
      rounds,
    )
  } finally {
    await verifiers.close()
    await crypto.close()
  }
}

/** Threads that verify signatures at the same time. */
function openVerifiers(bits: number) {
  const filename = new URL('../load/verify-thread.js', import.meta.url).href
  const pool = new Piscina({ filename, minThreads: THREADS, maxThreads: THREADS })
  const task: Verifications = { bits, times: VERIFICATION_BATCH_SIZE }
  return {
    verify: () => Promise.all(Array.from({ length: THREADS }, () => pool.run(task))),
    close: () => pool.destroy(),
  }
}

async function measure(openingCase: OpeningCase, rounds: number): Promise<Result> {
  const { open, messages, limit, limitMessages, signature } = openingCase
  const values: Rate[] = []
  const limits: Rate[] = []
  let ok = true
  const run = async () => {
    for (const opened of await open()) {
      ok &&= opened.state === 'verified' && (signature === undefined || opened.signature === signature)
    }
  }
  // The first round warms up the compiler of the JavaScript engine.
  for (let round = -1; round < rounds; round++) {
    const [value, limitValue] = await measureAlternatingRates(
      { messages, run },
      { messages: limitMessages, run: limit },
    )
    if (round < 0) continue
    values.push(value)
    limits.push(limitValue)
  }
  return {
    bench: 'protocol',
    case: openingCase.case,
    value: median(values),
    unit: 'msg/s/core',
    limit: median(limits),
    ratio: median(values.map((value, round) => value / (limits[round] ?? Number.NaN))),
    ...(openingCase.floor !== undefined && { floor: openingCase.floor }),
    rounds,
    spread: spreadOf(values),
    cpu_us: { protocol: 1_000_000 / median(values) },
    ok,
  }
}
