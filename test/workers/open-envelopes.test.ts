import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { envelopeOf } from '../support/federation/envelopes.js'

const crypto = openCryptoPool(2)
afterAll(() => crypto.close())

it('threads open any number of envelopes, with one result for each, in order', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const quin = { address: 'quin@q.example', guid: newGuid(), publicKey: pem, privateKey }
  const receivedAt = new Date('2026-01-02T03:04:05Z')
  const messages = Array.from({ length: 150 }, (_, index) => ({
    receivedAt,
    envelope:
      index % 10 === 9
        ? `broken ${index}`
        : envelopeOf(quin, {
            type: 'status_message',
            author: quin.address,
            guid: `0123456789abcdef-${index}`,
            created_at: receivedAt,
            public: true,
            text: `Number ${index}`,
            photos: [],
          }),
  }))

  const opened = await crypto.verifyEnvelopes(messages, new Map([[quin.address, createPublicKey(pem)]]))

  expect(opened).toHaveLength(150)
  for (const [index, result] of opened.entries()) {
    if (index % 10 === 9) expect(result).toMatchObject({ state: 'rejected', fault: 'InvalidEnvelope' })
    else expect(result).toMatchObject({ state: 'verified', sender: quin.address, entity: { text: `Number ${index}` } })
  }
  expect(await crypto.verifyEnvelopes(messages.slice(0, 1), new Map())).toEqual([
    { state: 'needs_key', keyOwner: quin.address },
  ])
  expect(await crypto.verifyEnvelopes([], new Map())).toEqual([])
})

it('an envelope is encrypted for any number of recipients, and each one decrypts it with their own key', async () => {
  const recipients = Array.from({ length: 9 }, () => generateKeyPairSync('rsa', { modulusLength: 1024 }))

  const recipientKeys = recipients.map(({ publicKey }) => publicKey)
  const [encryptedEnvelopes = []] = await crypto.encryptEnvelopes([{ envelope: '<an-envelope/>', recipientKeys }])
  const rightKeys = recipients.map(({ privateKey }, index) => ({
    encrypted: encryptedEnvelopes[index] ?? '',
    recipientKey: privateKey,
  }))
  const wrongKeys = recipients.map(({ privateKey }, index) => ({
    encrypted: encryptedEnvelopes[(index + 1) % encryptedEnvelopes.length] ?? '',
    recipientKey: privateKey,
  }))

  expect(await crypto.decryptEnvelopes(rightKeys)).toEqual(recipients.map(() => '<an-envelope/>'))
  expect(await crypto.decryptEnvelopes(wrongKeys)).toEqual(recipients.map(() => undefined))
})

it('a single small envelope is opened without a thread, a long one or a second one in a thread', async () => {
  const pool = openCryptoPool(1)
  const receivedAt = new Date()
  const open = (...envelopes: string[]) =>
    pool.verifyEnvelopes(
      envelopes.map((envelope) => ({ envelope, receivedAt })),
      new Map(),
    )
  await pool.close()

  expect(await open('broken')).toMatchObject([{ state: 'rejected', fault: 'InvalidEnvelope' }])
  await expect(open('broken'.repeat(10_000))).rejects.toThrow('The threads have been closed.')
  await expect(open('broken', 'broken')).rejects.toThrow('The threads have been closed.')
})
