import { generateKeyPairSync } from 'node:crypto'
import { Piscina } from 'piscina'
import { afterAll, expect, it } from 'vitest'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Relayable } from '../../src/protocol/entities/relayables.js'
import type * as tasks from '../../workers/threads/crypto-thread.js'

const pool = new Piscina({
  filename: new URL('../../workers/threads/from-source.mjs', import.meta.url).href,
  maxThreads: 1,
})
afterAll(() => pool.destroy())

function run<Name extends keyof typeof tasks>(
  name: Name,
  task: Parameters<(typeof tasks)[Name]>[0],
): Promise<ReturnType<(typeof tasks)[Name]>> {
  return pool.run(task, { name })
}

const ann = generateKeyPairSync('rsa', { modulusLength: 1024 })
const quin = generateKeyPairSync('rsa', { modulusLength: 1024 })
const receivedAt = new Date('2024-05-06T07:08:09Z')

const deletion: Entity = { type: 'account_deletion', author: 'ann@p.example' }
const vote: Relayable = {
  type: 'poll_participation',
  author: 'quin@q.example',
  guid: '0123456789abcdef',
  parent_guid: '0123456789abcdef',
  poll_answer_guid: '0123456789abcdef',
}

it('a thread seals, encrypts, decrypts and opens, with keys and dates passed unchanged', async () => {
  const author_signature = await run('signRelayable', { relayable: vote, key: quin.privateKey })
  const payloads = [writeEntity(deletion), writeEntity({ ...vote, author_signature })]
  const messages = payloads.map((payload) => ({ payload, sender: 'ann@p.example', key: ann.privateKey }))
  const signed = await run('signEnvelopes', { messages })
  const recipientKeys = [ann.publicKey, quin.publicKey]
  const [encryptedEnvelopes = []] = await run('encryptEnvelopes', {
    envelopes: [{ envelope: signed[0] ?? '', recipientKeys }],
  })
  const envelopes = await run('decryptEnvelopes', {
    messages: encryptedEnvelopes.map((encrypted) => ({ encrypted, recipientKey: ann.privateKey })),
  })
  const opened = await run('verifyEnvelopes', {
    messages: [...signed, 'rubbish'].map((envelope) => ({ envelope, receivedAt })),
    keys: new Map([
      ['ann@p.example', ann.publicKey],
      ['quin@q.example', quin.publicKey],
    ]),
  })

  expect(envelopes).toEqual([signed[0], undefined])
  const expected = [
    { state: 'verified', sender: 'ann@p.example', entity: deletion, signature: 'absent' },
    {
      state: 'verified',
      sender: 'ann@p.example',
      entity: expect.objectContaining({ type: vote.type }),
      signature: 'valid',
    },
    { state: 'rejected', fault: 'InvalidEnvelope', reason: expect.any(String) },
  ]
  expect(opened).toEqual(expected)
})
