import { buffer } from 'node:stream/consumers'
import { BackupError } from './backup-error.js'
import {
  decryptWithPassphrase,
  encryptWithPassphrase,
  generateBackupKey,
  readIdentities,
  recipientOf,
} from './encryption.js'
import type { Repository } from './repositories/repository.js'

/** `age --decrypt --identity passphrase-identity.age` asks for the passphrase and opens every part. */
const PATH = 'passphrase-identity.age'
const MIN_CHARACTERS = 12

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
): Promise<string> {
  if (await hasPassphraseIdentity(repository)) {
    const [identity = ''] = await readPassphraseIdentities(repository, passphrase)
    return recipientOf(identity)
  }
  if (passphrase.length < MIN_CHARACTERS) {
    throw new BackupError(`The passphrase must have at least ${MIN_CHARACTERS} characters.`)
  }
  const { identity, recipient } = await generateBackupKey()
  await repository.write(PATH, [await encryptWithPassphrase(`${identity}\n`, passphrase, logCost)])
  return recipient
}

export async function readPassphraseIdentities(repository: Repository, passphrase: string): Promise<readonly string[]> {
  if (!(await hasPassphraseIdentity(repository))) {
    throw new BackupError(`No backup in ${repository.place} was made with --passphrase.`)
  }
  return readIdentities(await decryptWithPassphrase(await buffer(repository.read(PATH)), passphrase))
}
