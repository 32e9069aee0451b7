import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { outcomeOfError } from '../../workers/job-outcome.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { THREAD_LIMITS } from '../../workers/threads/limits.js'
import { readKey } from '../support/pods/fixed-key-crypto.js'

const crypto = openCryptoPool(1)
const key = createPrivateKey(readKey('1.private.pem'))
afterAll(() => crypto.close())

it('the pool makes a matching pair of keys in the format of the network', async () => {
  const { publicKey, privateKey } = await crypto.generateKeyPair()

  expect(publicKey).toMatch(/^-----BEGIN PUBLIC KEY-----\n/)
  expect(privateKey).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
  expect(createPublicKey(publicKey).asymmetricKeyDetails).toMatchObject({ modulusLength: 4096, publicExponent: 65537n })
  const text = Buffer.from('Hello')
  const signature = sign('sha256', text, createPrivateKey(privateKey))
  expect(verify('sha256', text, createPublicKey(publicKey), signature)).toBe(true)
}, 180_000)

it('key generation in a thread does not block the event loop', async () => {
  let turns = 0
  const turning = setInterval(() => {
    turns += 1
  }, 1)
  await crypto.generateKeyPair()
  clearInterval(turning)

  expect(turns).toBeGreaterThan(5)
}, 180_000)

it('the pool gives up on a task that takes too long', async () => {
  const hurried = openCryptoPool(1, 1)

  expect(await outcomeOf(hurried.generateKeyPair())).toBe('ThreadTimeout')
  await hurried.close()
})

it('the pool queues two hundred tasks beyond the running ones, and rejects one more with a temporary error', async () => {
  const busy = openCryptoPool(2, 60_000)
  const refused: unknown[] = []
  const steps = Array.from({ length: THREAD_LIMITS.tasksQueued + 3 }, () =>
    busy.generateKeyPair().catch((error: Error) => (error.name === 'ThreadsBusy' ? refused.push(error) : undefined)),
  )
  await steps.at(-1)
  await busy.close()
  await Promise.all(steps)

  expect(refused).toHaveLength(1)
  expect(outcomeOfError(refused[0]).kind).toBe('unavailable')
})

it('the pool accepts as many new tasks as it has finished', async () => {
  const messages = Array.from({ length: THREAD_LIMITS.tasksQueued }, () => ({
    encrypted: 'rubbish',
    recipientKey: key,
  }))
  const once = () => crypto.decryptEnvelopes(messages)

  for (let time = 0; time < 5; time += 1) expect(await once()).toEqual(messages.map(() => undefined))
})

it('a closed pool rejects its running tasks and accepts no more', async () => {
  const closed = openCryptoPool(1)
  const making = outcomeOf(closed.generateKeyPair())
  await closed.close()

  expect(await making).not.toBe('made')
  expect(await outcomeOf(closed.generateKeyPair())).toBe('Error')
})

/** Leaves out the keys: a failed test would print them. */
function outcomeOf(making: Promise<unknown>): Promise<string> {
  return making.then(
    () => 'made',
    (error: Error) => error.name,
  )
}

it('public messages do not wait for private ones that were added just before them', async () => {
  const order: string[] = []
  const encrypted = Array.from({ length: 40 }, () => ({ encrypted: 'rubbish', recipientKey: key }))
  const envelopes = Array.from({ length: 2 }, () => ({ envelope: 'rubbish', receivedAt: new Date('2026-11-30') }))
  const decryption = crypto.decryptEnvelopes(encrypted).then(() => order.push('private'))
  const verification = crypto.verifyEnvelopes(envelopes, new Map()).then(() => order.push('public'))
  await Promise.all([decryption, verification])

  expect(order).toEqual(['public', 'private'])
})
