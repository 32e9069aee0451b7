import { ReadableStream } from 'node:stream/web'
import { messageOf } from '../../errors/thrown.js'
import { BackupError, WrongIdentityError, WrongPassphraseError } from './backup-error.js'

/** Loaded when a backup needs it: the library would delay every other command by a tenth. */
const loadAge = () => import('age-encryption')

/** A new pair of age keys. */
export async function generateBackupKey(): Promise<{ readonly identity: string; readonly recipient: string }> {
  const { generateX25519Identity, identityToRecipient } = await loadAge()
  const identity = await generateX25519Identity()
  return { identity, recipient: await identityToRecipient(identity) }
}

/** The recipients of a setting, separated by commas or spaces. Throws for texts that are not age recipients. */
export async function readRecipients(text: string): Promise<readonly string[]> {
  const recipients = text.split(/[\s,]+/).filter((each) => each !== '')
  const { Encrypter } = await loadAge()
  for (const recipient of recipients) {
    try {
      new Encrypter().addRecipient(recipient)
    } catch {
      throw new BackupError(`${recipient.slice(0, 80)} is not an age recipient: "pod backup keygen" prints one.`)
    }
  }
  return [...new Set(recipients)].sort()
}

/** The identities of a file as age writes it: one a line, with comments. */
export async function readIdentities(text: string): Promise<readonly string[]> {
  const identities = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const { Decrypter } = await loadAge()
  for (const identity of identities) {
    try {
      new Decrypter().addIdentity(identity)
    } catch {
      throw new BackupError('The identity file has a line that is not an age identity (AGE-SECRET-KEY-1…).')
    }
  }
  if (identities.length === 0) throw new BackupError('The identity file holds no age identity (AGE-SECRET-KEY-1…).')
  return identities
}

type Transform = (source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>

/** Encrypts for these recipients in the age format; without recipients, the bytes stay as they are. */
export function encryptFor(recipients: readonly string[]): Transform {
  return async function* encrypt(source) {
    if (recipients.length === 0) return yield* source
    const { Encrypter } = await loadAge()
    const encrypter = new Encrypter()
    for (const recipient of recipients) encrypter.addRecipient(recipient)
    yield* await encrypter.encrypt(ReadableStream.from(source))
  }
}

/** Decrypts with any of these identities; `undefined`: the bytes are not encrypted. */
export function decryptWith(identities: readonly string[] | undefined): Transform {
  return async function* decrypt(source) {
    if (identities === undefined) return yield* source
    const { Decrypter } = await loadAge()
    const decrypter = new Decrypter()
    for (const identity of identities) decrypter.addIdentity(identity)
    let sourceFailure: { readonly error: unknown } | undefined
    async function* recordFailure(): AsyncGenerator<Uint8Array> {
      try {
        yield* source
      } catch (error) {
        sourceFailure = { error }
        throw error
      }
    }
    try {
      yield* await decrypter.decrypt(ReadableStream.from(recordFailure()))
    } catch (error) {
      if (sourceFailure !== undefined) throw sourceFailure.error
      if (/no identity matched/i.test(messageOf(error))) throw new WrongIdentityError()
      throw new BackupError(`The content cannot be decrypted: it was changed or cut off (${messageOf(error)}).`)
    }
  }
}

/** Encrypts a text with a passphrase (scrypt), as `age --passphrase` does. */
export async function encryptWithPassphrase(text: string, passphrase: string, logCost?: number): Promise<Uint8Array> {
  const { Encrypter } = await loadAge()
  const encrypter = new Encrypter()
  encrypter.setPassphrase(passphrase)
  if (logCost !== undefined) encrypter.setScryptWorkFactor(logCost)
  return encrypter.encrypt(text)
}

/** Throws WrongPassphraseError for another passphrase. */
export async function decryptWithPassphrase(bytes: Uint8Array, passphrase: string): Promise<string> {
  const { Decrypter } = await loadAge()
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  try {
    return await decrypter.decrypt(bytes, 'text')
  } catch (error) {
    if (/no identity matched/i.test(messageOf(error))) throw new WrongPassphraseError()
    throw new BackupError(`The identity of the passphrase cannot be decrypted: it was changed (${messageOf(error)}).`)
  }
}

/** The recipient of an identity. */
export async function recipientOf(identity: string): Promise<string> {
  const { identityToRecipient } = await loadAge()
  return identityToRecipient(identity)
}
