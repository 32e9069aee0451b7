import { generateKeyPairSync, type KeyObject, randomBytes, sign, verify } from 'node:crypto'

/** A key, and something that it has signed. */
export interface Signed {
  readonly privateKey: KeyObject
  readonly bytes: Buffer
  /** Nothing but the verification. */
  verifyOnce(): void
}

/** Verified with its own key: a signature of another one may be refused without the work. */
export function makeSigned(bits: number): Signed {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const bytes = randomBytes(1_024)
  const signature = sign('sha256', bytes, privateKey)
  return {
    privateKey,
    bytes,
    verifyOnce() {
      if (!verify('sha256', bytes, publicKey, signature)) throw new Error('a right signature is refused')
    },
  }
}
