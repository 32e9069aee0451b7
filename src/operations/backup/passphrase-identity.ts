import { createHash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { BackupError } from './backup-error.js'
import {
  decryptWithPassphrase,
  encryptWithPassphrase,
  generateBackupKey,
  readIdentities,
  recipientOf,
} from './encryption.js'
import type { StoredFile } from './manifest.js'
import type { Repository } from './repositories/repository.js'

/** `age --decrypt --identity passphrase-identity.age` prompts for the passphrase and decrypts every part. */
const PATH = 'passphrase-identity.age'
const MIN_CHARACTERS = 12

export interface PassphraseRecipient {
  readonly recipient: string
  /** The identity, encrypted with the passphrase. */
  readonly identity: StoredFile
}

export async function hasPassphraseIdentity(repository: Repository): Promise<boolean> {
  return (await repository.size(PATH)) !== undefined
}

/**
 * Returns the recipient of the backups with a passphrase. Its identity is in the repository, encrypted with the passphrase: deriving a
 * key from it takes a second, which no picture must take. The first backup makes the identity, later ones need the same passphrase.
 */
export async function openPassphraseRecipient(
  repository: Repository,
  passphrase: string,
  /** Binary logarithm of the cost of scrypt, for tests; not set: 18. */
  logCost?: number,
): Promise<PassphraseRecipient> {
  if (await hasPassphraseIdentity(repository)) {
    const bytes = await buffer(repository.read(PATH))
    const [identity = ''] = await decryptIdentities(bytes, passphrase)
    return { recipient: await recipientOf(identity), identity: describeFile(bytes) }
  }
  if (passphrase.length < MIN_CHARACTERS) {
    throw new BackupError(`The passphrase must have at least ${MIN_CHARACTERS} characters.`)
  }
  const { identity, recipient } = await generateBackupKey()
  const bytes = await encryptWithPassphrase(`${identity}\n`, passphrase, logCost)
  await repository.write(PATH, [bytes])
  return { recipient, identity: describeFile(bytes) }
}

export async function readPassphraseIdentities(repository: Repository, passphrase: string): Promise<readonly string[]> {
  if (!(await hasPassphraseIdentity(repository))) {
    throw new BackupError(
      `There is no ${PATH} in ${repository.place}: no backup there was made with --passphrase, or the file is lost.`,
    )
  }
  return decryptIdentities(await buffer(repository.read(PATH)), passphrase)
}

async function decryptIdentities(bytes: Uint8Array, passphrase: string): Promise<readonly string[]> {
  return readIdentities(await decryptWithPassphrase(bytes, passphrase))
}

function describeFile(bytes: Uint8Array): StoredFile {
  return { path: PATH, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}
