import {
  constants,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  privateDecrypt,
  publicEncrypt,
  randomBytes,
} from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decryptWithPrivateKey,
  encryptWithPublicKey,
  readPrivateKey,
  readPublicKey,
  signRsaSha256,
  verifyRsaSha256,
} from '../../src/protocol/signatures/rsa.js'

const size = 128
const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: size * 8 })

function publicPem(key: KeyObject, type: 'spki' | 'pkcs1' = 'spki'): string {
  return key.export({ type, format: 'pem' }).toString()
}

function privatePem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString()
}

describe('a public key of a person', () => {
  it('is read in both forms that pods publish', () => {
    for (const type of ['spki', 'pkcs1'] as const) {
      expect(readPublicKey(`\n${publicPem(publicKey, type)}\n`)?.equals(publicKey)).toBe(true)
    }
  })

  it('may have the exponent 3 and 1024 to 8192 bits', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1024, publicExponent: 3 }).publicKey

    expect(readPublicKey(publicPem(small))).toBeDefined()
    expect(readPublicKey(publicPem(withModulus(oddNumber(8192))))).toBeDefined()
  })

  it.each([
    ['nothing', ''],
    ['something else', 'ssh-rsa AAAA'],
    ['rubbish in the right frame', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'],
    ['a private key', privatePem(privateKey)],
    ['a key with something before it', `x${publicPem(publicKey)}`],
    ['two keys', publicPem(publicKey) + publicPem(publicKey)],
    ['an elliptic curve', publicPem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey)],
    ['Ed25519', publicPem(generateKeyPairSync('ed25519').publicKey)],
    ['RSA that is for PSS only', publicPem(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey)],
    ['RSA with 512 bits', publicPem(generateKeyPairSync('rsa', { modulusLength: 512 }).publicKey)],
    ['RSA with 8200 bits', publicPem(withModulus(oddNumber(8200)))],
    ['RSA with 16384 bits', publicPem(withModulus(oddNumber(16384)))],
    [
      'an exponent of its own',
      publicPem(generateKeyPairSync('rsa', { modulusLength: 1024, publicExponent: 17 }).publicKey),
    ],
    ['an even modulus', publicPem(withModulus(Buffer.concat([oddNumber(2040), Buffer.from([0])])))],
    ['a key among endless blanks', publicPem(publicKey) + '\n'.repeat(4_096)],
    ['a frame of megabytes', `-----BEGIN PUBLIC KEY-----\n${'A'.repeat(5_000_000)}\n-----END PUBLIC KEY-----`],
  ])('is never %s', (_what, text) => expect(readPublicKey(text)).toBeUndefined())

  it('a public key of a local person is read as well', () => {
    expect(readPrivateKey(privatePem(privateKey))?.equals(privateKey)).toBe(true)
    expect(readPrivateKey('rubbish')).toBeUndefined()
    expect(readPrivateKey(privatePem(generateKeyPairSync('ed25519').privateKey))).toBeUndefined()
  })
})

describe('a signature', () => {
  const bytes = Buffer.from('hello')
  const signature = signRsaSha256(bytes, privateKey)

  it('fits the bytes and the key', () => {
    expect(verifyRsaSha256(bytes, publicKey, signature)).toBe(true)
    expect(verifyRsaSha256(Buffer.from('hallo'), publicKey, signature)).toBe(false)
    expect(verifyRsaSha256(bytes, generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey, signature)).toBe(false)
  })

  it.each([
    ['empty', Buffer.alloc(0)],
    ['short', signature.subarray(1)],
    ['long', Buffer.concat([signature, Buffer.from([0])])],
    ['larger than the modulus', Buffer.alloc(size, 0xff)],
  ])('is refused when it is %s', (_what, wrong) => expect(verifyRsaSha256(bytes, publicKey, wrong)).toBe(false))

  it('is refused with any bit of its first and last bytes changed', () => {
    for (const index of [0, 1, size - 2, size - 1]) {
      for (let bit = 0; bit < 8; bit++)
        expect(verifyRsaSha256(bytes, publicKey, flipped(signature, index, 1 << bit))).toBe(false)
    }
  })
})

describe('unwrapping', () => {
  it('returns the wrapped bytes, of every length', () => {
    for (let length = 0; length <= size - 11; length++) {
      const message = randomBytes(length)
      expect(unwrapped(encryptWithPublicKey(message, publicKey)).message).toEqual(message)
    }
  })

  const message = Buffer.from('the message')
  const good = padded(message)

  it('takes padding that is right', () => {
    expect(unwrapped(encryptBlock(good)).message).toEqual(message)
  })

  it('gives the decoy for every wrong value of the first two bytes', () => {
    for (const index of [0, 1]) {
      for (let difference = 1; difference < 256; difference++) {
        // A block above the modulus cannot be encrypted; everything below it can arrive.
        if (index === 0 && difference > 0x7f) continue
        expectDecoy(encryptBlock(flipped(good, index, difference)))
      }
    }
  })

  it('gives the decoy for fewer than eight bytes of padding', () => {
    for (let index = 2; index < 10; index++) expectDecoy(encryptBlock(withByte(good, index, 0)))
    expect(unwrapped(encryptBlock(withByte(good, 10, 0))).message).toEqual(good.subarray(11))
  })

  it('gives the decoy where nothing separates padding and message', () => {
    expectDecoy(encryptBlock(Buffer.from(good.map((byte) => byte || 1))))
    expectDecoy(encryptBlock(withByte(Buffer.from(good.map((byte) => byte || 1)), 0, 0)))
  })

  it('gives the decoy for OAEP, and for any byte of the input changed', () => {
    // Without the highest bit of the first byte no change makes a number above the modulus.
    let wrapped: Buffer
    do wrapped = encryptBlock(padded(message))
    while ((wrapped[0] ?? 0) >= 0x80)
    const changed = Array.from(wrapped, (_byte, index) => flipped(wrapped, index, 1))
    const oaep = publicEncrypt({ key: publicKey, padding: constants.RSA_PKCS1_OAEP_PADDING }, message)

    // A few of a million blocks happen to begin like padding.
    const unlucky = [oaep, ...changed].filter((input) => decryptBlock(input).readUInt16BE(0) !== 2)
    expect(unlucky.length).toBeGreaterThan(size - 5)
    for (const input of unlucky) expectDecoy(input)
  })

  it('agrees with the plain definition of the padding for any block', () => {
    const byte = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 255 }))
    const start = fc.oneof(
      fc.constant([0, 2]),
      fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 })),
    )
    fc.assert(
      fc.property(start, fc.array(byte, { minLength: size - 2, maxLength: size - 2 }), (first, rest) => {
        const block = Buffer.from([...first, ...rest])
        const { message: read, decoy } = unwrapped(encryptBlock(block))
        const end = block.indexOf(0, 2)
        const isPadded = block[0] === 0 && block[1] === 2 && end >= 10
        expect(read).toEqual(isPadded ? block.subarray(end + 1) : decoy)
      }),
    )
  })

  it('gives the same decoy for the same input, and another one for another input or key', () => {
    const input = encryptBlock(flipped(good, 1, 1))
    const decoy = unwrapped(input).decoy

    expect(decoy).toHaveLength(48)
    expect(unwrapped(input).decoy).toEqual(decoy)
    expect(unwrapped(encryptBlock(flipped(good, 1, 2))).decoy).not.toEqual(decoy)
    const other = generateKeyPairSync('rsa', { modulusLength: size * 8 })
    expect(decryptWithPrivateKey(withByte(input, 0, 0), other.privateKey)?.decoy).not.toEqual(decoy)
  })

  it('refuses a block that does not fit the key before it is decrypted', () => {
    const wrapped = encryptWithPublicKey(message, publicKey)
    const cases = [
      Buffer.alloc(0),
      wrapped.subarray(1),
      Buffer.concat([Buffer.from([0]), wrapped]),
      Buffer.alloc(size, 0xff),
    ]

    for (const wrong of cases) expect(decryptWithPrivateKey(wrong, privateKey)).toBeUndefined()
  })
})

function unwrapped(wrapped: Buffer) {
  const result = decryptWithPrivateKey(wrapped, privateKey)
  if (result === undefined) throw new Error('it does not fit the key')
  return result
}

function expectDecoy(wrapped: Buffer): void {
  const { message, decoy } = unwrapped(wrapped)
  expect(message).toEqual(decoy)
}

function padded(message: Buffer): Buffer {
  const padding = randomBytes(size - 3 - message.length).map((byte) => byte || 1)
  return Buffer.concat([Buffer.from([0, 2]), padding, Buffer.from([0]), message])
}

function encryptBlock(block: Buffer): Buffer {
  return publicEncrypt({ key: publicKey, padding: constants.RSA_NO_PADDING }, block)
}

function decryptBlock(wrapped: Buffer): Buffer {
  return privateDecrypt({ key: privateKey, padding: constants.RSA_NO_PADDING }, wrapped)
}

function flipped(bytes: Buffer, index: number, difference: number): Buffer {
  return withByte(bytes, index, (bytes[index] ?? 0) ^ difference)
}

function withByte(bytes: Buffer, index: number, value: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[index] = value
  return copy
}

function oddNumber(bits: number): Buffer {
  const number = randomBytes(bits / 8)
  return withByte(withByte(number, 0, 0xff), number.length - 1, 0xff)
}

function withModulus(modulus: Buffer): KeyObject {
  return createPublicKey({ key: { kty: 'RSA', n: modulus.toString('base64url'), e: 'AQAB' }, format: 'jwk' })
}
