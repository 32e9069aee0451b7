import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Relayable } from '../../src/protocol/entities/relayables.js'
import { signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import { verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { signMigration } from '../../src/protocol/signatures/migration-signature.js'
import { signRelayable } from '../../src/protocol/signatures/relayable-signature.js'

const receivedAt = new Date('2024-05-06T07:08:09.010Z')
const ann = generateKeyPairSync('rsa', { modulusLength: 1024 })
const quin = generateKeyPairSync('rsa', { modulusLength: 1024 })
const keys = new Map([
  ['ann@p.example', ann.publicKey],
  ['quin@q.example', quin.publicKey],
])

const post: Entity = {
  type: 'status_message',
  author: 'ann@p.example',
  guid: '0123456789abcdef',
  created_at: new Date('2024-05-06T07:08:09Z'),
  public: true,
  text: 'Hello',
  photos: [],
}
const comment: Relayable = {
  type: 'comment',
  author: 'quin@q.example',
  guid: 'fedcba9876543210',
  parent_guid: '0123456789abcdef',
  text: ' one; two\r\n',
  created_at: new Date('2024-05-06T07:08:09Z'),
}
const signedComment = { ...comment, author_signature: signRelayable(comment, quin.privateKey) }

function seal(entity: Entity | string, sender = 'ann@p.example'): string {
  return signMagicEnvelope(typeof entity === 'string' ? entity : writeEntity(entity), sender, ann.privateKey)
}

function open(envelope: string, known = keys) {
  return verifyEnvelope(envelope, known, receivedAt)
}

describe('opening an envelope', () => {
  it('gives the sender and the entity', () => {
    expect(open(seal(post))).toEqual({ state: 'verified', sender: 'ann@p.example', entity: post, signature: 'absent' })
  })

  it('gives plain data, which arrives in another thread as it was', () => {
    const opened = open(seal(signedComment))

    expect(structuredClone(opened)).toStrictEqual(opened)
  })

  it('uses the time of receipt for entities without a time', () => {
    const payload = writeEntity(post).replace(/<created_at>.*<\/created_at>/, '')

    expect(open(seal(payload))).toMatchObject({ entity: { created_at: receivedAt } })
  })

  it('requires the key of the sender before anything is verified, by the address in lower case', () => {
    expect(open(seal('rubbish', 'Nobody@Nowhere.example'))).toEqual({
      state: 'needs_key',
      keyOwner: 'nobody@nowhere.example',
    })
  })

  it('does not read a payload that the sender has not signed', () => {
    const forged = signMagicEnvelope('rubbish', 'ann@p.example', quin.privateKey)

    expect(open(forged)).toEqual({
      state: 'rejected',
      fault: 'InvalidSignature',
      reason: 'the signature is not that of ann@p.example',
    })
  })

  it.each([
    ['hello', 'InvalidEnvelope'],
    [seal('rubbish'), 'InvalidPayload'],
    [seal('<constructor/>'), 'UnknownEntity'],
    [seal('<account_deletion/>'), 'ValidationError'],
  ])('says what is wrong', (envelope, fault) => {
    expect(open(envelope)).toMatchObject({ state: 'rejected', fault, reason: expect.stringMatching(/./) })
  })
})

describe('opening an entity that its author has signed', () => {
  it('verifies that signature with the key of the author', () => {
    expect(open(seal(signedComment))).toMatchObject({
      state: 'verified',
      entity: { text: ' one; two\r\n' },
      signature: 'valid',
    })
  })

  it('finds it wrong when anything in the entity or the key is another', () => {
    const altered = { ...signedComment, text: ' one; two\n' }
    const imposed = { ...comment, author_signature: signRelayable(comment, ann.privateKey) }

    expect(open(seal(altered))).toMatchObject({ state: 'verified', signature: 'invalid' })
    expect(open(seal(imposed))).toMatchObject({ state: 'verified', signature: 'invalid' })
  })

  it('leaves it open whether a signature that is not there was needed', () => {
    expect(open(seal(comment))).toMatchObject({ state: 'verified', signature: 'absent' })
    expect(open(seal({ ...comment, author_signature: '' }))).toMatchObject({ state: 'verified', signature: 'absent' })
  })

  it('requires the key of the author after the envelope is verified', () => {
    const onlyAnn = new Map([['ann@p.example', ann.publicKey]])

    expect(open(seal(signedComment), onlyAnn)).toEqual({
      state: 'needs_key',
      keyOwner: 'quin@q.example',
      sender: 'ann@p.example',
    })
  })

  it('requires in a migration the signature of the identity that does not send it', () => {
    const profile = { type: 'profile', author: 'quin@q.example', searchable: true, public: false, nsfw: false } as const
    const identities = { from: 'ann@p.example', to: 'quin@q.example' }
    const migration = {
      type: 'account_migration',
      author: 'ann@p.example',
      profile,
      old_identity: 'ann@p.example',
    } as const

    const signed = { ...migration, signature: signMigration(identities, quin.privateKey) }
    const signedByItself = { ...migration, signature: signMigration(identities, ann.privateKey) }
    expect(open(seal(signed))).toMatchObject({ state: 'verified', signature: 'valid' })
    expect(open(seal(signedByItself))).toMatchObject({ state: 'verified', signature: 'invalid' })
  })
})
