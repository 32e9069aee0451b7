import { constants, generateKeyPairSync, privateDecrypt, randomBytes, sign, verify } from 'node:crypto'
import { openEncryptedEnvelope } from '../src/protocol/encrypted-envelope.js'
import { type Opened, openEnvelope } from '../src/protocol/open-envelope.js'
import { openCryptoPool } from '../workers/threads/crypto-pool.js'
import { type BenchOptions, median, type Result, spreadOf } from './bench.js'
import { FLOORS } from './floors.js'
import { hostileXml } from './hostile-xml.js'
import { type Rate, rateOf } from './processor-time.js'
import { type Corpus, makeCorpus } from './protocol-corpus.js'

/** Opening envelopes on one core, beside the RSA operations that no implementation can do without. */
export async function* benchProtocol({ rounds }: BenchOptions): AsyncGenerator<Result> {
  for (const bits of [2048, 4096]) {
    const corpus = makeCorpus(bits, BATCH)
    for (const subject of subjectsOf(corpus, bits)) yield measure(subject, rounds)
    yield await measureThreads(corpus, bits, rounds)
  }
  yield* hostileXml(rounds)
}

/** As many as one thread gets at a time. */
const BATCH = 64
const TRIPS = 40
/** Each thread compiles for itself, and is at its full speed only after some ten thousand messages. */
const TRIPS_BEFORE = 300
const receivedAt = new Date()

interface Subject {
  readonly case: string
  /** Only with the keys that people have; smaller ones leave more of the time to us. */
  readonly floor?: number
  readonly messages: number
  readonly open: () => readonly Opened[]
  readonly limitMessages: number
  /** Nothing but the RSA operations of `limitMessages` messages. */
  readonly limit: () => void
  readonly signature: 'valid' | 'absent'
}

function subjectsOf(corpus: Corpus, bits: number): readonly Subject[] {
  const { statusMessages, comments, privateMessages, keys, recipientKey } = corpus
  const isUsual = bits === 4096
  const verifyOnce = signatureOf(bits)
  const open = (envelope: string) => openEnvelope(envelope, keys, receivedAt)
  const openPrivate = (encrypted: string) => open(openEncryptedEnvelope(encrypted, recipientKey) ?? '')
  const verifyTimes = (times: number) => () => {
    for (let done = 0; done < times; done++) verifyOnce()
  }
  const wrapped = Buffer.concat([Buffer.alloc(1), randomBytes(bits / 8 - 1)])
  const few = privateMessages.slice(0, 4)

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
      open: () => few.map(openPrivate),
      limitMessages: 1,
      limit: () => privateDecrypt({ key: recipientKey, padding: constants.RSA_NO_PADDING }, wrapped),
      signature: 'absent',
    },
  ]
}

/** Verifies a signature. One that does not belong to the key may be refused without the work. */
function signatureOf(bits: number): () => void {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const bytes = randomBytes(1024)
  const signature = sign('sha256', bytes, privateKey)
  return () => {
    if (!verify('sha256', bytes, publicKey, signature)) throw new Error('a right signature is refused')
  }
}

/** One post for four relayed comments, nine signatures for five, with the way into the threads and back; by the time of all processors. */
async function measureThreads(
  { statusMessages, comments, keys }: Corpus,
  bits: number,
  rounds: number,
): Promise<Result> {
  const messages = [...statusMessages.slice(0, BATCH / 4), ...comments].map((envelope) => ({ envelope, receivedAt }))
  const signatures = BATCH / 4 + 2 * comments.length
  const verifyOnce = signatureOf(bits)
  const crypto = openCryptoPool()
  const values: Rate[] = []
  const limits: Rate[] = []
  let ok = true
  try {
    const open = async (trips: number) => {
      for (let times = 0; times < trips; times++) {
        for (const opened of await crypto.openEnvelopes(messages, keys)) ok &&= opened.state === 'open'
      }
    }
    await open(TRIPS_BEFORE)
    for (let round = 0; round < rounds; round++) {
      const start = process.cpuUsage()
      await open(TRIPS)
      const { user, system } = process.cpuUsage(start)
      const limit = rateOf(1, verifyOnce)
      values.push((TRIPS * messages.length * 1_000_000) / (user + system))
      limits.push((limit * messages.length) / signatures)
    }
  } finally {
    await crypto.close()
  }
  return {
    bench: 'protocol',
    case: `unenvelop, threads, rsa${bits}`,
    value: median(values),
    unit: 'msg/s/core',
    limit: median(limits),
    ratio: median(values.map((value, round) => value / (limits[round] ?? Number.NaN))),
    ...(bits === 4096 && { floor: FLOORS.unenvelopInThreads }),
    rounds,
    spread: spreadOf(values),
    cpu_us: { protocol: 1_000_000 / median(values) },
    ok,
  }
}

function measure(subject: Subject, rounds: number): Result {
  const values: Rate[] = []
  const limits: Rate[] = []
  let ok = true
  const open = () => {
    for (const opened of subject.open()) ok &&= opened.state === 'open' && opened.signature === subject.signature
  }
  // Once unmeasured, for the compiler of the JavaScript engine.
  for (let round = -1; round < rounds; round++) {
    const value = rateOf(subject.messages, open)
    const limit = rateOf(subject.limitMessages, subject.limit)
    if (round < 0) continue
    values.push(value)
    limits.push(limit)
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
