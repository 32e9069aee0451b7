import { createCipheriv, createDecipheriv, createHash, createHmac, type KeyObject, randomBytes } from 'node:crypto'
import { access, link, readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import type { Config } from '../config/config.js'
import { makeFolder } from '../config/make-folder.js'
import { ACCOUNT_LIMITS } from '../domain/accounts/limits.js'
import { StartError } from '../errors/start-error.js'
import { hasCode, messageOf } from '../errors/thrown.js'
import { readPrivateKey } from '../protocol/signatures/rsa.js'
import type { SecretOwner, Secrets } from './services.js'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const MIN_KEY_BYTES = 32
const KEY_FILE = 'secret-key'

/** The key for secrets in the database: the setting, or a key made once and stored in the data folder. */
export async function readSecretKey(config: Pick<Config, 'secretKey' | 'dataDir'>): Promise<Buffer> {
  return keyOfText(await readSecretText(config))
}

/** The text of which the key is made, as the setting or the file has it. */
export async function readSecretText({ secretKey, dataDir }: Pick<Config, 'secretKey' | 'dataDir'>): Promise<string> {
  return secretKey ?? (await storedKey(dataDir))
}

function keyOfText(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** True if `readSecretKey` would find a key instead of making one. */
export async function hasSecretKey({ secretKey, dataDir }: Pick<Config, 'secretKey' | 'dataDir'>): Promise<boolean> {
  if (secretKey !== undefined) return true
  return access(secretKeyFile(dataDir)).then(
    () => true,
    () => false,
  )
}

/** Columns with the prefix `sealed_` hold values that `encrypt` and `encryptBytes` have made. */
export function createSecrets(key: Buffer): Secrets {
  function decryptBytes(sealed: Buffer, owner: SecretOwner | undefined): Buffer {
    const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES))
    if (owner !== undefined) decipher.setAAD(Buffer.from(owner))
    decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
    const body = sealed.subarray(NONCE_BYTES, -TAG_BYTES)
    return Buffer.concat([decipher.update(body), decipher.final()])
  }

  function encryptBytes(bytes: Buffer, owner: SecretOwner): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, key, nonce)
    cipher.setAAD(Buffer.from(owner))
    return Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
  }

  /**
   * Private keys by owner and sealed bytes, so that no owner can get the key of another one. Decrypting and parsing a key takes longer
   * than checking a signature.
   */
  const keys = new LRUCache<string, KeyObject>({ max: ACCOUNT_LIMITS.privateKeysCached })

  function decryptPrivateKey(sealed: Buffer, owner: SecretOwner): KeyObject | undefined {
    const name = `${owner} ${sealed.toString('base64')}`
    const privateKey = keys.get(name) ?? readPrivateKey(decryptBytes(sealed, owner).toString('utf8'))
    if (privateKey !== undefined) keys.set(name, privateKey)
    return privateKey
  }

  return {
    decryptPrivateKey,
    encrypt: (text, owner) => encryptBytes(Buffer.from(text), owner),
    decrypt: (sealed, owner) => decryptBytes(sealed, owner).toString('utf8'),
    decryptUnbound: (sealed) => decryptBytes(sealed, undefined).toString('utf8'),
    encryptBytes,
    decryptBytes,
    mac: (text, purpose) => createHmac('sha256', key).update(`${purpose}\0${text}`).digest(),
  }
}

export function secretKeyFile(dataDir: string): string {
  return join(dataDir, KEY_FILE)
}

/** The key in a data folder, whatever its length. Undefined: there is none. */
export async function findStoredKey(dataDir: string): Promise<string | undefined> {
  try {
    return (await readFile(secretKeyFile(dataDir), 'utf8')).trim()
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** Writes a given key to a data folder. Fails if the folder has another one. */
export async function storeSecretKey(dataDir: string, text: string): Promise<void> {
  if ((await findStoredKey(dataDir)) === text) return
  await makeFolder(dataDir, 0o700)
  await writeFile(secretKeyFile(dataDir), text, { mode: 0o600, flag: 'wx', flush: true })
}

/** Reads or creates the key file. Web and worker may start at once: `link` makes the file appear complete and only once. */
async function storedKey(dataDir: string): Promise<string> {
  const path = secretKeyFile(dataDir)
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`
  try {
    return await readStoredKey(path)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw unusableKeyFile(path, error)
  }
  try {
    await makeFolder(dataDir, 0o700)
    await writeFile(draft, randomBytes(32).toString('hex'), { mode: 0o600, flag: 'wx' })
    await link(draft, path).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error
    })
    await unlink(draft)
    return await readStoredKey(path)
  } catch (error) {
    throw unusableKeyFile(path, error)
  }
}

/** An emptied or truncated file would be a weak key, so it is refused. */
async function readStoredKey(path: string): Promise<string> {
  const text = (await readFile(path, 'utf8')).trim()
  if (text.length < MIN_KEY_BYTES) throw new Error('it holds no key; restore it from your backup')
  return text
}

function unusableKeyFile(path: string, cause: unknown): StartError {
  return new StartError(
    `The secret key of this pod cannot be kept in ${path} (${messageOf(cause)}): make the folder writable, or set SECRET_KEY or DATA_DIR.`,
    { cause },
  )
}
