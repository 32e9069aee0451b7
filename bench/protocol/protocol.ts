import { constants, privateDecrypt, randomBytes } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import { decryptEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { type VerifiedEnvelope, verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { Verifications } from '../load/verify-thread.js'
import { type Rate, ratesInTurns } from '../machine/processor-time.js'
import { makeSigned } from '../machine/signed.js'
import { hostileXml } from './hostile-xml.js'
import { type Corpus, makeCorpus } from './protocol-corpus.js'

/** Opening envelopes on one core, in turns with the RSA operations that no implementation can do without. */
export async function* benchProtocol({ rounds }: BenchOptions): AsyncGenerator<Result> {
  for (const bits of [2048, 4096]) {
    const corpus = makeCorpus(bits, BATCH)
    for (const subject of subjectsOf(corpus, bits)) yield await measure(subject, rounds)
    yield await measureThreads(corpus, bits, rounds)
  }
  yield* hostileXml(rounds)
}

/** As many as one thread gets at a time. */
const BATCH = 64
/** A burst of them fills a batch of a worker; these take as long as hundreds of public ones. */
const PRIVATE_MESSAGE_BATCH_SIZE = 8
/** Each thread compiles for itself, and is at its full speed only after some ten thousand messages. */
const TRIPS_BEFORE = 100
const THREADS = availableParallelism()
/** By each thread that does nothing else. */
const VERIFICATION_BATCH_SIZE = 200
const receivedAt = new Date()

interface Subject {
  readonly case: string
  /** Only with the keys that people have; smaller ones leave more of the time to us. */
  readonly floor?: number
  readonly messages: number
  readonly open: () => readonly VerifiedEnvelope[] | Promise<readonly VerifiedEnvelope[]>
  readonly limitMessages: number
  /** Nothing but the RSA operations of `limitMessages` messages. */
  readonly limit: () => unknown
  /** Not set: some have one, and others have none. */
  readonly signature?: 'valid' | 'absent'
}

function subjectsOf(corpus: Corpus, bits: number): readonly Subject[] {
  const { statusMessages, comments, privateMessages, keys, recipientKey } = corpus
  const isUsual = bits === 4096
  const { verifyOnce } = makeSigned(bits)
  const open = (envelope: string) => verifyEnvelope(envelope, keys, receivedAt)
  const takeCoatOff = (encrypted: string) => decryptEnvelope(encrypted, recipientKey) ?? ''
  const verifyTimes = (times: number) => () => {
    for (let done = 0; done < times; done++) verifyOnce()
  }
  const few = privateMessages.slice(0, PRIVATE_MESSAGE_BATCH_SIZE)
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
      messages: few.length,
      // As in a worker: all envelopes are decrypted first.
      open: () => few.map(takeCoatOff).map(open),
      limitMessages: few.length,
      limit: () => few.map(() => privateDecrypt({ key: recipientKey, padding: constants.RSA_NO_PADDING }, wrapped)),
      signature: 'absent',
    },
  ]
}

/**
 * One post for four relayed comments, nine signatures for five, with the way into the threads and back, about as many at once as a
 * worker takes in. The limit: as many threads do nothing but verify.
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
    for (let times = 0; times < TRIPS_BEFORE; times++) await open()
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

/** All threads at the same time. */
function openVerifiers(bits: number) {
  const filename = new URL('../load/verify-thread.js', import.meta.url).href
  const pool = new Piscina({ filename, minThreads: THREADS, maxThreads: THREADS })
  const task: Verifications = { bits, times: VERIFICATION_BATCH_SIZE }
  return {
    verify: () => Promise.all(Array.from({ length: THREADS }, () => pool.run(task))),
    close: () => pool.destroy(),
  }
}

async function measure(subject: Subject, rounds: number): Promise<Result> {
  const { open, messages, limit, limitMessages, signature } = subject
  const values: Rate[] = []
  const limits: Rate[] = []
  let ok = true
  const once = async () => {
    for (const opened of await open()) {
      ok &&= opened.state === 'verified' && (signature === undefined || opened.signature === signature)
    }
  }
  // Once unmeasured, for the compiler of the JavaScript engine.
  for (let round = -1; round < rounds; round++) {
    const [value, most] = await ratesInTurns({ messages, once }, { messages: limitMessages, once: limit })
    if (round < 0) continue
    values.push(value)
    limits.push(most)
  }
  return {
    bench: 'protocol',
    case: subject.case,
    value: median(values),
    unit: 'msg/s/core',
    limit: median(limits),
    ratio: median(values.map((value, round) => value / (limits[round] ?? Number.NaN))),
    ...(subject.floor !== undefined && { floor: subject.floor }),
    rounds,
    spread: spreadOf(values),
    cpu_us: { protocol: 1_000_000 / median(values) },
    ok,
  }
}
