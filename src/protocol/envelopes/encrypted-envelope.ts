import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from 'node:crypto'
import { decodeBase64 } from '../base64.js'
import { decryptWithPrivateKey, encryptWithPublicKey } from '../signatures/rsa.js'
import { isCleanText } from '../xml/xml.js'

const cipher = 'aes-256-cbc'

interface Secret {
  readonly key: Buffer
  readonly iv: Buffer
}

/** The encrypted envelope of a private delivery: only the owner of the key can read it; each encryption gives other bytes. */
export function writeEncryptedEnvelope(envelope: string, recipientKey: KeyObject): string {
  const secret: Secret = { key: randomBytes(32), iv: randomBytes(16) }
  const aes = createCipheriv(cipher, secret.key, secret.iv)
  const encryptedBytes = Buffer.concat([aes.update(envelope, 'utf8'), aes.final()])
  const secretText = JSON.stringify({ key: secret.key.toString('base64'), iv: secret.iv.toString('base64') })
  return JSON.stringify({
    aes_key: encryptWithPublicKey(Buffer.from(secretText), recipientKey).toString('base64'),
    encrypted_magic_envelope: encryptedBytes.toString('base64'),
  })
}

/**
 * Decrypts an envelope. `undefined`: cannot be decrypted; the reason is never given (rsa.ts). The resulting text is not verified
 * yet and may not be an envelope.
 */
export function decryptEnvelope(encryptedEnvelope: string, recipientKey: KeyObject): string | undefined {
  const { aes_key: wrapped, encrypted_magic_envelope: encrypted } = readJsonObject(encryptedEnvelope) ?? {}
  const wrappedBytes = readMember(wrapped)
  const encryptedBytes = readMember(encrypted)
  if (wrappedBytes === undefined || encryptedBytes === undefined) return undefined

  const decryption = decryptWithPrivateKey(wrappedBytes, recipientKey)
  if (decryption === undefined) return undefined
  const { message, decoy } = decryption
  const secret = readSecret(message) ?? { key: decoy.subarray(0, 32), iv: decoy.subarray(32) }
  return decrypt(encryptedBytes, secret)
}

/** Whether a body has the form of an encrypted envelope: an object with two texts, one as long as a wrapped key. */
export function mayBeEncryptedEnvelope(body: string): boolean {
  const { aes_key: wrapped, encrypted_magic_envelope: encrypted } = readJsonObject(body) ?? {}
  if (typeof wrapped !== 'string' || typeof encrypted !== 'string') return false
  return wrapped.length >= MIN_KEY_CHARACTERS && wrapped.length <= MAX_KEY_CHARACTERS && encrypted !== ''
}

/**
 * Length of the encrypted key in base64: from RSA of 1024 bits without padding to RSA of 8192 bits with a line break after every few
 * characters.
 */
const MIN_KEY_CHARACTERS = 171
const MAX_KEY_CHARACTERS = 2_048

function readSecret(message: Buffer): Secret | undefined {
  const members = readJsonObject(message.toString())
  const key = readMember(members?.['key'])
  const iv = readMember(members?.['iv'])
  if (key?.length !== 32 || iv?.length !== 16) return undefined
  return { key, iv }
}

function decrypt(encrypted: Buffer, { key, iv }: Secret): string | undefined {
  const aes = createDecipheriv(cipher, key, iv)
  try {
    const text = utf8.decode(Buffer.concat([aes.update(encrypted), aes.final()]))
    // A changed block decrypts to sixteen random bytes. Reporting a broken envelope would be a padding oracle for the end of the text.
    return isCleanText(text) ? text : undefined
  } catch {
    return undefined
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function readJsonObject(text: string): { readonly [member: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(text)
    // Spread into a plain record of unknown members.
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function readMember(value: unknown): Buffer | undefined {
  return typeof value === 'string' ? decodeBase64(value) : undefined
}
