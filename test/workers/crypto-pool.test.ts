import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { THREAD_LIMITS } from '../../src/limits.js'
import { outcomeOfError } from '../../workers/job-outcome.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { readKey } from '../support/network.js'

const crypto = openCryptoPool(1)
const key = createPrivateKey(readKey('1.private.pem'))
afterAll(() => crypto.close())

it('makes a pair of keys that fit each other, as the network wants them', async () => {
  const { publicKey, privateKey } = await crypto.generateKeyPair()

  expect(publicKey).toMatch(/^-----BEGIN PUBLIC KEY-----\n/)
  expect(privateKey).toMatch(/^-----BEGIN PRIVATE KEY-----\n/)
  expect(createPublicKey(publicKey).asymmetricKeyDetails).toMatchObject({ modulusLength: 4096, publicExponent: 65537n })
  const text = Buffer.from('Hello')
  const signature = sign('sha256', text, createPrivateKey(privateKey))
  expect(verify('sha256', text, createPublicKey(publicKey), signature)).toBe(true)
}, 60_000)

it('leaves the event loop alone while a thread looks for keys', async () => {
  let turns = 0
  const turning = setInterval(() => {
    turns += 1
  }, 1)
  await crypto.generateKeyPair()
  clearInterval(turning)

  expect(turns).toBeGreaterThan(5)
}, 60_000)

it('gives up on a step that takes too long', async () => {
  const hurried = openCryptoPool(1, 1)

  expect(await outcomeOf(hurried.generateKeyPair())).toBe('ThreadTimeout')
  await hurried.close()
})

it('takes two hundred steps beyond those that its threads do, and refuses one more in a way that passes', async () => {
  const busy = openCryptoPool(2, 60_000)
  const refused: unknown[] = []
  const steps = Array.from({ length: THREAD_LIMITS.tasksQueued + 3 }, () =>
    busy.generateKeyPair().catch((error: Error) => (error.name === 'ThreadsBusy' ? refused.push(error) : undefined)),
  )
  await steps.at(-1)
  await busy.close()
  await Promise.all(steps)

  expect(refused).toHaveLength(1)
  expect(outcomeOfError(refused[0]).kind).toBe('ours')
})

it('has room again for as much as it has done', async () => {
  const messages = Array.from({ length: THREAD_LIMITS.tasksQueued }, () => ({
    encrypted: 'rubbish',
    recipientKey: key,
  }))
  const once = () => crypto.openEncryptedEnvelopes(messages)

  for (let time = 0; time < 5; time += 1) expect(await once()).toEqual(messages.map(() => undefined))
})

it('gives up what is in hand when it is closed, and takes nothing more', async () => {
  const closed = openCryptoPool(1)
  const making = outcomeOf(closed.generateKeyPair())
  await closed.close()

  expect(await making).not.toBe('made')
  expect(await outcomeOf(closed.generateKeyPair())).toBe('Error')
})

/** Without the keys: a failed test would print them. */
function outcomeOf(making: Promise<unknown>): Promise<string> {
  return making.then(
    () => 'made',
    (error: Error) => error.name,
  )
}
