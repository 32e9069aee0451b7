import { createCipheriv, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { encryptWithPublicKey, readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import { until } from '../../soak/until.js'
import { postBy } from '../../support/federation/entities.js'
import { encryptEnvelopeFor, envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { ageJobs } from './age-jobs.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { postInbound } from './senders.js'
import { store } from './this-run.js'

/** Fault of the thread by initialisation vector of sixteen bytes, which the hook recognises. */
type ThreadFault = 'a thread dies...' | 'a thread loops..' | 'a thread eats...'

const PER_SECOND = 20
const STORED_WITHIN_MS = 120_000
/** Longer than twice the time limit of a task: a first and a last attempt. */
const DEAD_WITHIN_MS = 150_000

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({
    store: store(),
    settings: { CRYPTO_THREADS: '2' },
    hooksOf: (kind) => (kind === 'worker' ? { hooks: ['faulty-thread'] } : undefined),
  })
})
afterAll(() => podUnderFaults?.close())

/** An encrypted envelope that ends the thread that decrypts it. */
function harmfulEncryptedEnvelope(envelope: string, fault: ThreadFault): string {
  const recipientKey = readPublicKey(podUnderFaults.alice.publicKey)
  if (recipientKey === undefined) throw new Error('Every local user has a key.')
  const secret = { key: randomBytes(32), iv: Buffer.from(fault) }
  const aes = createCipheriv('aes-256-cbc', secret.key, secret.iv)
  const encrypted = Buffer.concat([aes.update(envelope), aes.final()])
  const text = JSON.stringify({ key: secret.key.toString('base64'), iv: secret.iv.toString('base64') })
  return JSON.stringify({
    aes_key: encryptWithPublicKey(Buffer.from(text), recipientKey).toString('base64'),
    encrypted_magic_envelope: encrypted.toString('base64'),
  })
}

/** Sends private posts, some of which cause the fault; returns the guids of the others. */
async function send(
  author: FakePerson,
  count: number,
  faults: ReadonlyMap<number, ThreadFault>,
): Promise<readonly string[]> {
  const guids: string[] = []
  for (let index = 0; index < count; index += 1) {
    const post = postBy(author, { public: false })
    const envelope = envelopeOf(author, post)
    const fault = faults.get(index)
    if (fault === undefined) guids.push(post.guid)
    const body =
      fault === undefined
        ? encryptEnvelopeFor(podUnderFaults.alice.publicKey, envelope)
        : harmfulEncryptedEnvelope(envelope, fault)
    const path = `/receive/users/${podUnderFaults.alice.guid}`
    await until(
      'the message is accepted',
      STORED_WITHIN_MS,
      async () => (await postInbound(podUnderFaults, path, body)).status === 202,
    )
    await pause(1_000 / PER_SECOND)
  }
  return guids
}

async function untilStored(guids: readonly string[]): Promise<void> {
  await until('all others are stored', STORED_WITHIN_MS, async () => {
    return (await podUnderFaults.pod.db('posts').whereIn('guid', guids).select('id')).length === guids.length
  })
}

/** Returns the dead letters, each with one message, and discards them. */
async function untilDead(count: number): Promise<void> {
  const listFailed = () => podUnderFaults.pod.jobs.failed('inbound-private', 0, 10)
  await until(`${count} dead letters exist`, DEAD_WITHIN_MS, async () => {
    await ageJobs(podUnderFaults, 'inbound-private')
    return (await listFailed()).length === count
  })
  const dead = await listFailed()
  expect(dead.map(({ data }) => data.messages.length)).toEqual(dead.map(() => 1))
  expect(dead.map(({ failedReason }) => failedReason)).toEqual(dead.map(() => 'internal'))
  await Promise.all(dead.map((job) => job.remove()))
}

it('F26: one thread ends, another one exhausts memory', async () => {
  const author = await podUnderFaults.otherPods.addKnownPerson()
  const faults = new Map<number, ThreadFault>([
    [20, 'a thread dies...'],
    [50, 'a thread eats...'],
  ])

  const others = await send(author, 100, faults)

  await untilStored(others)
  await untilDead(faults.size)
})

it('F26: a thread loops', async () => {
  const author = await podUnderFaults.otherPods.addKnownPerson()
  await send(author, 1, new Map([[0, 'a thread loops..']]))

  const others = await send(author, 60, new Map())

  await untilStored(others) // processed by the other thread
  await untilDead(1)
  await untilStored(await send(author, 10, new Map()))
})
