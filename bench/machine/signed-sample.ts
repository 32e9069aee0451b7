import { generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from 'node:crypto'

/** Signed bytes and their private key. */
export interface SignedSample {
  readonly privateKey: KeyObject
  readonly bytes: Buffer
  /** Verifies the signature of the bytes. */
  verifyOnce(): void
}

/** Generates a key and a valid signature: an invalid one might be rejected with less work. */
export function makeSignedSample(bits: number): SignedSample {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const bytes = randomBytes(1_024)
  const signature = sign('sha256', bytes, privateKey)
  return {
    privateKey,
    bytes,
    verifyOnce() {
      if (!verify('sha256', bytes, publicKey, signature)) throw new Error('A valid signature was rejected.')
    },
  }
}
