import * as crypto from 'node:crypto'

type KeyObject = crypto.KeyObject

const publicPem = /^\s*-----BEGIN (RSA )?PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END \1PUBLIC KEY-----\s*$/
const maxPemCharacters = 4096

/**
 * Reads a public key in SPKI or PKCS#1 form. `undefined`: not an RSA key within the limits. Smaller keys are insecure; larger ones
 * would make verification arbitrarily slow.
 */
export function readPublicKey(pem: string): KeyObject | undefined {
  // The form is checked first: createPublicKey would accept a private key or a certificate too.
  if (pem.length > maxPemCharacters || !publicPem.test(pem)) return undefined
  const key = readUsableKey(() => crypto.createPublicKey(pem))
  return key !== undefined && canEncrypt(key) ? key : undefined
}

export function readPrivateKey(pem: string): KeyObject | undefined {
  return readUsableKey(() => crypto.createPrivateKey(pem))
}

function readUsableKey(read: () => KeyObject): KeyObject | undefined {
  let key: KeyObject
  try {
    key = read()
  } catch {
    return undefined
  }
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {}
  const isBounded = modulusLength >= 1024 && modulusLength <= 8192 && [3n, 65537n].includes(publicExponent)
  return key.asymmetricKeyType === 'rsa' && isBounded ? key : undefined
}

/** Trial encryption: an invalid modulus fails only in use, which would fail every delivery. */
function canEncrypt(key: KeyObject): boolean {
  try {
    return encryptWithPublicKey(Buffer.from('trial'), key).length > 0
  } catch {
    return false
  }
}

/** RSASSA-PKCS1-v1_5 with SHA-256, the only signature algorithm of the network. */
export function signRsaSha256(bytes: Buffer, key: KeyObject): Buffer {
  return crypto.sign('sha256', bytes, key)
}

export function verifyRsaSha256(bytes: Buffer, key: KeyObject, signature: Buffer): boolean {
  return crypto.verify('sha256', bytes, key, signature)
}

/** Encrypts a short message with PKCS#1 v1.5 padding. */
export function encryptWithPublicKey(message: Buffer, key: KeyObject): Buffer {
  return crypto.publicEncrypt({ key, padding: crypto.constants.RSA_PKCS1_PADDING }, message)
}

export interface DecryptedBlock {
  readonly message: Buffer
  /** 48 bytes that replace an invalid message: the same for the same input, unknown to the sender. */
  readonly decoy: Buffer
}

/**
 * Decrypts the output of `encryptWithPublicKey`. Invalid padding is not an error (implicit rejection): the message is then the decoy, and decryption fails
 * later, as for random bytes in valid padding. A visible difference would be a decryption oracle (Bleichenbacher 1998); for this reason
 * Node 20 does not offer this padding. `undefined` only for public properties: a length or number that does not fit the key.
 */
export function decryptWithPrivateKey(wrapped: Buffer, key: KeyObject): DecryptedBlock | undefined {
  const size = Math.ceil((key.asymmetricKeyDetails?.modulusLength ?? 0) / 8)
  if (wrapped.length !== size) return undefined
  let block: Buffer
  try {
    block = crypto.privateDecrypt({ key, padding: crypto.constants.RSA_NO_PADDING }, wrapped)
  } catch {
    return undefined
  }
  const decoy = deriveDecoy(wrapped, key)
  return { message: unpad(block, decoy), decoy }
}

/**
 * Block: 00 02, at least eight nonzero bytes, 00, message. Constant time: no branch or index depends on the block before all of it is
 * read. Masks are -1 or 0, and select block or decoy byte by byte.
 */
function unpad(block: Buffer, decoy: Buffer): Buffer {
  let separatorSeen = 0
  let separator = 0
  for (let index = 2; index < block.length; index++) {
    const first = isZero(byteAt(block, index)) & ~separatorSeen
    separator |= index & first
    separatorSeen |= first
  }
  const good = isZero(byteAt(block, 0)) & isZero(byteAt(block, 1) ^ 2) & ~isLess(separator, 10)

  const message = Buffer.alloc(block.length)
  const decoyStart = block.length - decoy.length
  for (let index = 0; index < block.length; index++) {
    const substitute = index < decoyStart ? 0 : byteAt(decoy, index - decoyStart)
    message[index] = (byteAt(block, index) & good) | (substitute & ~good)
  }
  const start = ((separator + 1) & good) | (decoyStart & ~good)
  return message.subarray(start)
}

function deriveDecoy(wrapped: Buffer, key: KeyObject): Buffer {
  return crypto.createHmac('sha512', decoySecretOf(key)).update(wrapped).digest().subarray(0, DECOY_BYTES)
}

/** An AES key and an initialisation vector. */
const DECOY_BYTES = 48

/** Cached, because exporting a key is slow. Entries are freed with their key. */
const decoySecrets = new WeakMap<KeyObject, Buffer>()

function decoySecretOf(key: KeyObject): Buffer {
  const cachedSecret = decoySecrets.get(key)
  if (cachedSecret !== undefined) return cachedSecret
  const secret = crypto
    .createHash('sha256')
    .update(key.export({ type: 'pkcs1', format: 'der' }))
    .digest()
  decoySecrets.set(key, secret)
  return secret
}

/** -1 for zero, 0 for any other byte. */
function isZero(byte: number): number {
  return (byte - 1) >> 31
}

/** -1 or 0, for numbers far below 2 ** 31. */
function isLess(left: number, right: number): number {
  return (left - right) >> 31
}

function byteAt(bytes: Buffer, index: number): number {
  return bytes[index] ?? 0
}
