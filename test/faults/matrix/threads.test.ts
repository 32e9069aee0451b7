import { createCipheriv, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { encryptWithPublicKey, readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import { until } from '../../soak/until.js'
import { postBy } from '../../support/federation/entities.js'
import { encryptEnvelopeFor, envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { ageJobs } from './age-jobs.js'
import { type PodUnderFaults, startAssailedPod } from './pod-under-faults.js'
import { askToReceive } from './senders.js'
import { store } from './this-run.js'

/** Fault of the thread by initialisation vector of sixteen bytes, which the hook recognises. */
type Illness = 'a thread dies...' | 'a thread loops..' | 'a thread eats...'

const PER_SECOND = 20
const SOON = 120_000
/** Longer than twice the time limit of a task: a first and a last attempt. */
const IN_THE_END = 150_000

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startAssailedPod({
    store: store(),
    settings: { CRYPTO_THREADS: '2' },
    hooked: (kind) => (kind === 'worker' ? { hooks: ['ill-thread'] } : undefined),
  })
})
afterAll(() => podUnderFaults?.close())

/** An encrypted envelope that ends the thread that decrypts it. */
function harmfulEncryptedEnvelope(envelope: string, illness: Illness): string {
  const recipientKey = readPublicKey(podUnderFaults.alice.publicKey)
  if (recipientKey === undefined) throw new Error('Every local user has a key.')
  const secret = { key: randomBytes(32), iv: Buffer.from(illness) }
  const aes = createCipheriv('aes-256-cbc', secret.key, secret.iv)
  const encrypted = Buffer.concat([aes.update(envelope), aes.final()])
  const text = JSON.stringify({ key: secret.key.toString('base64'), iv: secret.iv.toString('base64') })
  return JSON.stringify({
    aes_key: encryptWithPublicKey(Buffer.from(text), recipientKey).toString('base64'),
    encrypted_magic_envelope: encrypted.toString('base64'),
  })
}

/** Sends private posts, some of which cause the fault; returns the guids of the others. */
async function send(author: FakePerson, many: number, ill: ReadonlyMap<number, Illness>): Promise<readonly string[]> {
  const guids: string[] = []
  for (let index = 0; index < many; index += 1) {
    const post = postBy(author, { public: false })
    const envelope = envelopeOf(author, post)
    const illness = ill.get(index)
    if (illness === undefined) guids.push(post.guid)
    const body =
      illness === undefined
        ? encryptEnvelopeFor(podUnderFaults.alice.publicKey, envelope)
        : harmfulEncryptedEnvelope(envelope, illness)
    const path = `/receive/users/${podUnderFaults.alice.guid}`
    await until('it is accepted', SOON, async () => (await askToReceive(podUnderFaults, path, body)).status === 202)
    await pause(1_000 / PER_SECOND)
  }
  return guids
}

async function untilStored(guids: readonly string[]): Promise<void> {
  await until('all others are stored', SOON, async () => {
    return (await podUnderFaults.pod.db('posts').whereIn('guid', guids).select('id')).length === guids.length
  })
}

/** Returns the dead letters, each with one message, and discards them. */
async function untilDead(many: number): Promise<void> {
  const listFailed = () => podUnderFaults.pod.jobs.failed('inbound-private', 0, 10)
  await until(`${many} are dead`, IN_THE_END, async () => {
    await ageJobs(podUnderFaults, 'inbound-private')
    return (await listFailed()).length === many
  })
  const dead = await listFailed()
  expect(dead.map(({ data }) => data.messages.length)).toEqual(dead.map(() => 1))
  expect(dead.map(({ failedReason }) => failedReason)).toEqual(dead.map(() => 'internal'))
  await Promise.all(dead.map((job) => job.remove()))
}

it('F26: one thread ends, another one exhausts memory', async () => {
  const author = await podUnderFaults.otherPods.addKnownPerson()
  const ill = new Map<number, Illness>([
    [20, 'a thread dies...'],
    [50, 'a thread eats...'],
  ])

  const others = await send(author, 100, ill)

  await untilStored(others)
  await untilDead(ill.size)
})

it('F26: a thread loops', async () => {
  const author = await podUnderFaults.otherPods.addKnownPerson()
  await send(author, 1, new Map([[0, 'a thread loops..']]))

  const others = await send(author, 60, new Map())

  await untilStored(others) // processed by the other thread
  await untilDead(1)
  await untilStored(await send(author, 10, new Map()))
})
