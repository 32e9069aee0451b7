import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'

const crypto = openCryptoPool(1)
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
