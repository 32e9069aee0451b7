import { createPrivateKey, createPublicKey } from 'node:crypto'
import { afterAll, expect, it } from 'vitest'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { CommentEntity } from '../../src/protocol/entities/relayables.js'
import { verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { readKey } from '../support/pods/fixed-key-crypto.js'

const crypto = openCryptoPool(1)
afterAll(() => crypto.close())

it('a thread signs a comment for its author and seals it for the author of the post', async () => {
  const comment: CommentEntity = {
    type: 'comment',
    author: 'ben@p.example',
    guid: '0123456789abcdef',
    parent_guid: 'fedcba9876543210',
    text: 'Hello;\r\n<ann>',
    created_at: new Date('2024-05-06T07:08:09.250Z'),
  }

  const author_signature = await crypto.signRelayable(comment, createPrivateKey(readKey('1.private.pem')))
  const payload = writeEntity({ ...comment, author_signature })
  const envelope = await crypto.signEnvelope(payload, 'ann@p.example', createPrivateKey(readKey('2.private.pem')))

  const keys = new Map([
    ['ben@p.example', createPublicKey(readKey('1.public.pem'))],
    ['ann@p.example', createPublicKey(readKey('2.public.pem'))],
  ])
  expect(verifyEnvelope(envelope, keys, new Date())).toMatchObject({
    state: 'verified',
    sender: 'ann@p.example',
    signature: 'valid',
    entity: { author: 'ben@p.example', text: 'Hello;\r\n<ann>', created_at: new Date('2024-05-06T07:08:09Z') },
  })
})
