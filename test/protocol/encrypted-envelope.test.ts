import { createCipheriv, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decryptEnvelope, writeEncryptedEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { decryptWithPrivateKey, encryptWithPublicKey } from '../../src/protocol/signatures/rsa.js'
import { readKeys } from './vector-keys.js'
import { readVectors } from './vectors.js'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
const envelope = '<me:env xmlns:me="http://salmon-protocol.org/ns/magic-env">é😀</me:env>\n'
const key = randomBytes(32)
const iv = randomBytes(16)

interface EncryptedEnvelope {
  readonly aes_key: string
  readonly encrypted_magic_envelope: string
}

function encryptedEnvelope(changes: { secret?: Buffer | string; encrypted?: Buffer } = {}): EncryptedEnvelope {
  const secret = changes.secret ?? JSON.stringify({ key: key.toString('base64'), iv: iv.toString('base64') })
  return {
    aes_key: encryptWithPublicKey(Buffer.from(secret), publicKey).toString('base64'),
    encrypted_magic_envelope: (changes.encrypted ?? encrypt(Buffer.from(envelope))).toString('base64'),
  }
}

/** Encrypts with the padding of AES, or with that of the caller. */
function encrypt(text: Buffer, padding?: Buffer): Buffer {
  const aes = createCipheriv('aes-256-cbc', key, iv)
  if (padding === undefined) return Buffer.concat([aes.update(text), aes.final()])
  aes.setAutoPadding(false)
  return Buffer.concat([aes.update(Buffer.concat([text, padding])), aes.final()])
}

function open(encryptedEnvelope: unknown, recipientKey: KeyObject = privateKey): string | undefined {
  return decryptEnvelope(
    typeof encryptedEnvelope === 'string' ? encryptedEnvelope : JSON.stringify(encryptedEnvelope),
    recipientKey,
  )
}

describe('an envelope encrypted here', () => {
  it('can be decrypted by its recipient alone', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(open(writeEncryptedEnvelope(text, publicKey))).toBe(text)
      }),
    )
    expect(
      open(writeEncryptedEnvelope(envelope, publicKey), generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey),
    ).toBeUndefined()
  })

  it('is different for each recipient, and has the form that other pods read', () => {
    const [first, second] = [1, 2].map((): EncryptedEnvelope => JSON.parse(writeEncryptedEnvelope(envelope, publicKey)))

    expect(Object.keys(first ?? {})).toEqual(['aes_key', 'encrypted_magic_envelope'])
    expect(first?.aes_key).toMatch(/^[A-Za-z0-9+/]+=*$/)
    expect(first?.encrypted_magic_envelope).toMatch(/^[A-Za-z0-9+/]+=*$/)
    expect(first?.encrypted_magic_envelope).not.toBe(second?.encrypted_magic_envelope)
  })
})

describe('an envelope encrypted by other software', () => {
  const usual = encryptedEnvelope()
  const brokenUp = (text: string) => text.replace(/.{60}/g, '$&\n')

  it.each([
    [
      'with line breaks',
      { aes_key: brokenUp(usual.aes_key), encrypted_magic_envelope: brokenUp(usual.encrypted_magic_envelope) },
    ],
    [
      'without padding',
      {
        aes_key: usual.aes_key.replace(/=+$/, ''),
        encrypted_magic_envelope: usual.encrypted_magic_envelope.replace(/=+$/, ''),
      },
    ],
    ['with more members', { version: 2, ...usual }],
    ['with blanks in the JSON', JSON.stringify(usual, null, '\t')],
    [
      'with more members in the secret',
      encryptedEnvelope({
        secret: JSON.stringify({ x: [1], iv: iv.toString('base64'), key: key.toString('base64') }, null, 1),
      }),
    ],
  ])('may come %s', (_what, text) => expect(open(text)).toBe(envelope))

  it.each([
    ['nothing', ''],
    ['no JSON', '<env/>'],
    ['an array', []],
    ['null', 'null'],
    ['a string', '"x"'],
    ['no members', {}],
    ['numbers', { aes_key: 1, encrypted_magic_envelope: 2 }],
    ['only a key', { aes_key: usual.aes_key }],
    ['only a text', { encrypted_magic_envelope: usual.encrypted_magic_envelope }],
    ['the other alphabet', { ...usual, encrypted_magic_envelope: `-_${usual.encrypted_magic_envelope.slice(2)}` }],
    ['empty members', { aes_key: '', encrypted_magic_envelope: '' }],
    ['a key that is cut', { ...usual, aes_key: usual.aes_key.slice(0, 100) }],
    ['a secret that is not JSON', encryptedEnvelope({ secret: 'hello' })],
    ['a secret that is empty', encryptedEnvelope({ secret: '' })],
    ['a secret that is an array', encryptedEnvelope({ secret: '[]' })],
    ['a key of 16 bytes', encryptedEnvelope({ secret: secretOf(key.subarray(16), iv) })],
    ['an iv of 8 bytes', encryptedEnvelope({ secret: secretOf(key, iv.subarray(8)) })],
    ['another key', encryptedEnvelope({ secret: secretOf(randomBytes(32), iv) })],
    ['no encrypted bytes', { ...usual, encrypted_magic_envelope: '' }],
    ['bytes that fill no block', encryptedEnvelope({ encrypted: encrypt(Buffer.from(envelope)).subarray(3) })],
    ['text in Latin-1', encryptedEnvelope({ encrypted: encrypt(Buffer.from(envelope, 'latin1')) })],
    ['text with a NUL', encryptedEnvelope({ encrypted: encrypt(Buffer.from('<me:env>\0')) })],
  ])('is not readable with %s', (_what, text) => expect(open(text)).toBeUndefined())

  it('is taken off with the decoy where it has no secret, so that nothing shows that there is none', () => {
    const wrapped = encryptWithPublicKey(Buffer.from('hello'), publicKey)
    const decoy = decryptWithPrivateKey(wrapped, privateKey)?.decoy ?? Buffer.alloc(0)
    const aes = createCipheriv('aes-256-cbc', decoy.subarray(0, 32), decoy.subarray(32))
    const encrypted = Buffer.concat([aes.update(envelope), aes.final()])

    expect(open({ aes_key: wrapped.toString('base64'), encrypted_magic_envelope: encrypted.toString('base64') })).toBe(
      envelope,
    )
  })

  it.each([0, 17, 255])('is not readable when its text ends with the padding %i', (last) => {
    const block = Buffer.from('0123456789abcdef')

    expect(open(encryptedEnvelope({ encrypted: encrypt(block, Buffer.alloc(16, last)) }))).toBeUndefined()
    expect(open(encryptedEnvelope({ encrypted: encrypt(block, Buffer.alloc(16, 16)) }))).toBe('0123456789abcdef')
  })
})

describe('a known envelope', () => {
  const vectors = readVectors(new URL('../vectors/federation.json', import.meta.url))
  const known = vectors.receive.find(({ name }) => name === 'private status_message to a 2048 bit key')
  const { aes_key, encrypted_magic_envelope }: EncryptedEnvelope = JSON.parse(known?.input ?? '')
  const recipientKey = readKeys(vectors.people).of(known?.recipient ?? '').privateKey

  it('is readable as it is', () => {
    expect(open({ aes_key, encrypted_magic_envelope }, recipientKey)).toContain('<me:env')
  })

  it('is not readable with any byte of its key changed', () => {
    for (const changed of withEachByteChanged(aes_key)) {
      expect(open({ aes_key: changed, encrypted_magic_envelope }, recipientKey)).toBeUndefined()
    }
  })

  it('is not readable with any byte of its text changed', () => {
    for (const changed of withEachByteChanged(encrypted_magic_envelope)) {
      expect(open({ aes_key, encrypted_magic_envelope: changed }, recipientKey)).toBeUndefined()
    }
  })
})

function* withEachByteChanged(base64: string): Generator<string> {
  const bytes = Buffer.from(base64, 'base64')
  for (const [index, byte] of bytes.entries()) {
    const changed = Buffer.from(bytes)
    changed[index] = byte ^ (1 + (index % 255))
    yield changed.toString('base64')
  }
}

function secretOf(secretKey: Buffer, secretIv: Buffer): string {
  return JSON.stringify({ key: secretKey.toString('base64'), iv: secretIv.toString('base64') })
}
