import { messageOf } from '../../errors/thrown.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import { BackupError, WrongIdentityError } from './backup-error.js'
import { decryptWith } from './encryption.js'
import { listManifestParts, type Manifest, type StoredFile } from './manifest.js'
import { createByteCounter, type Part, readPart, readStored } from './parts.js'
import { readPictureList } from './pictures.js'
import type { Repository } from './repositories/repository.js'

export interface VerifyOptions {
  readonly repository: Repository
  /** Not given: only the stored bytes are checked. */
  readonly identities: readonly string[] | undefined
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

/**
 * Checks every file of a backup, and returns the faults in sentences. With an identity it decrypts all of them; a wrong identity is
 * refused.
 */
export async function verifyBackup(manifest: Manifest, options: VerifyOptions): Promise<readonly string[]> {
  const faults: string[] = []
  const { signal, report } = options
  let done = 0
  const check = async (size: number, run: () => Promise<void>) => {
    signal.throwIfAborted()
    try {
      await run()
    } catch (error) {
      if (!(error instanceof BackupError) || error instanceof WrongIdentityError) throw error
      faults.push(messageOf(error))
    }
    done += size
    report({ step: 'files', done, total: Math.max(manifest.bytes, done) })
  }
  const isOpened = options.identities !== undefined || manifest.recipients.length === 0

  for (const part of listManifestParts(manifest)) {
    await check(part.size, () =>
      isOpened ? openOrCheck(part, options, () => openPart(part, options)) : checkFile(part, options),
    )
  }
  const { passphrase_identity: passphraseIdentity } = manifest
  if (passphraseIdentity !== undefined) {
    await check(passphraseIdentity.size, () => checkFile(passphraseIdentity, options))
  }
  await check(manifest.pictures.size, () => checkFile(manifest.pictures, options))
  if (faults.some((fault) => fault.startsWith(manifest.pictures.path))) return faults
  let pictures = 0
  for await (const picture of readPictureList(options.repository.read(manifest.pictures.path))) {
    pictures += 1
    if (manifest.pictures.referenced) continue
    const identities = manifest.recipients.length === 0 ? undefined : options.identities
    await check(picture.size, () => openOrCheck(picture, options, () => checkFile(picture, options, identities)))
  }
  if (pictures !== manifest.pictures.count)
    faults.push(`${manifest.pictures.path}: ${pictures} pictures are listed, not ${manifest.pictures.count}.`)
  return faults
}

/** With a wrong identity there is no fault in the backup: it is refused, unless the file was changed. */
async function openOrCheck(file: StoredFile, options: VerifyOptions, open: () => Promise<void>): Promise<void> {
  try {
    await open()
  } catch (error) {
    if (error instanceof WrongIdentityError) await checkFile(file, options)
    throw error
  }
}

async function openPart(part: Part, { repository, identities, signal }: VerifyOptions): Promise<void> {
  const isPlain = !part.path.endsWith('.age')
  await readPart({ repository, identities: isPlain ? undefined : identities, signal }, part, drain)
}

/** Checks size and hash of a file as it is stored, and decrypts it if identities are given. */
async function checkFile(
  file: StoredFile,
  { repository, signal }: VerifyOptions,
  identities?: readonly string[],
): Promise<void> {
  const fileBytes = createByteCounter()
  try {
    await drain(decryptWith(identities)(fileBytes.count(readStored(repository, file, signal))))
  } catch (error) {
    if (error instanceof WrongIdentityError) throw error
    if (error instanceof BackupError && error.message.startsWith(file.path)) throw error
    if (error instanceof BackupError) throw new BackupError(`${file.path}: ${error.message}`)
    throw error
  }
  const { bytes, sha256 } = fileBytes.result()
  if (bytes !== file.size) throw new BackupError(`${file.path}: the file has ${bytes} bytes, not ${file.size}.`)
  if (sha256 !== file.sha256) throw new BackupError(`${file.path}: the file was changed.`)
}

async function drain(content: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of content);
}
