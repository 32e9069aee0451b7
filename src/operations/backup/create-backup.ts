import { readSoftware } from '../../config/software.js'
import { messageOf } from '../../errors/thrown.js'
import { acceptedMessages } from '../../jobs/inbound/accepted-messages.js'
import { messageWithoutStatement } from '../../persistence/database/errors.js'
import { migrationStatus } from '../../persistence/database/migrate.js'
import { type BackupResult, recordBackupEnd, recordBackupStart } from '../../persistence/operations/backup-runs.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import { readServerVersion } from '../../persistence/operations/server-properties.js'
import { readSecretText } from '../../services/secrets.js'
import type { Services } from '../../services/services.js'
import { withBackupLock } from './backup-lock.js'
import { removeLeftovers } from './leftovers.js'
import {
  backupFolder,
  findManifest,
  listBackupIds,
  listManifestParts,
  type Manifest,
  type ManifestParts,
  newBackupId,
  type PictureContent,
  removeBackup,
  type StoredFile,
  writeManifest,
} from './manifest.js'
import { createByteCounter, type Part, writePart } from './parts.js'
import { backUpPictures, type LocalPhotos, type PictureEntry, readPictureList, referPictures } from './pictures.js'
import type { Repository } from './repositories/repository.js'
import { openSnapshot } from './snapshot.js'

type BackupDependencies = Pick<Services, 'config' | 'db' | 'jobs' | 'pictures' | 'log' | 'now'>

export interface CreateOptions {
  readonly repository: Repository
  /** Empty: the backup is not encrypted. */
  readonly recipients: readonly string[]
  /** The file that a passphrase decrypts, if the recipient is that of a passphrase. */
  readonly passphraseIdentity?: StoredFile | undefined
  /** Names of the settings that are set. */
  readonly settings: readonly string[]
  readonly signal: AbortSignal
  readonly report: ReportProgress
  /** Size of a part before compression, for tests. */
  readonly pieceBytes?: number
}

const PIECE_BYTES = 64 * 2 ** 20

/** Creates a backup while the pod runs. A second concurrent backup is refused. */
export async function createBackup(services: BackupDependencies, options: CreateOptions): Promise<Manifest> {
  return withBackupLock(services, options.signal, async (signal) => {
    const id = newBackupId(services.now())
    await recordBackupStart(services.db, id)
    try {
      const manifest = await writeBackup(services, id, { ...options, signal })
      const { bytes, bytes_new: bytesNew, rows: rowCount } = manifest
      await tryRecordEnd(services, id, { bytes, bytesNew, rowCount })
      return manifest
    } catch (error) {
      // Deletes the parts of the failed backup, because on a full disk the next run needs their space. `removeLeftovers` deletes those
      // of a killed run.
      await removeBackup(options.repository, id).catch(() => undefined)
      const fault = messageWithoutStatement(messageOf(error)) || 'no reason is known'
      await tryRecordEnd(services, id, { fault })
      throw error
    }
  })
}

/** A complete backup stays, even if its result cannot be recorded. */
async function tryRecordEnd({ db, log }: BackupDependencies, id: string, result: BackupResult): Promise<void> {
  await recordBackupEnd(db, id, result).catch((err: unknown) => log.warn({ err }, 'backup run not recorded'))
}

/**
 * The order matters. Accepted messages come before the snapshot: otherwise messages that are stored in between would be in neither.
 * Pictures come after it.
 */
async function writeBackup(services: BackupDependencies, id: string, options: CreateOptions): Promise<Manifest> {
  const { repository, recipients, passphraseIdentity, report } = options
  await removeLeftovers(repository, services.now())
  const startedAt = services.now().toISOString()
  const previous = await findPrevious(repository, recipients)
  const { host } = services.config
  const { applied, unknown } = await migrationStatus(services.db)
  const postgresql = await readServerVersion(services.db)

  const write = (
    name: string,
    content: AsyncIterable<Uint8Array>,
    onBytes: (bytes: number) => void = () => undefined,
  ) => writePart({ ...options, onBytes }, `${backupFolder(id)}/${name}`, content)
  const inbound = await write('inbound-messages', jsonLines(acceptedMessages(services.jobs)))
  const { tables, sequences, photos, closedAccounts } = await backUpTables(services, options, write)
  const secretKey = await write('secret-key', singleLine(await readSecretText(services.config)))
  const isReferenced = services.config.backupPictures === 'reference'
  const pictures = isReferenced
    ? await writeReferences(services, id, options)
    : await writePictures(services, id, { photos, previous }, options)

  const content = { tables, inbound, secret_key: secretKey, closed_accounts: closedAccounts } as const
  const sizes = sizesOf(content, pictures)
  report({ step: 'manifest', done: 0, total: undefined })
  const manifest: Manifest = {
    format: 1,
    id,
    host,
    version: readSoftware().version,
    postgresql,
    // The tables are those of the newest migration, also if a newer program has applied it.
    migrations: [...applied, ...unknown],
    started_at: startedAt,
    finished_at: services.now().toISOString(),
    recipients,
    settings: options.settings,
    ...content,
    sequences,
    pictures: pictures.content,
    ...(passphraseIdentity !== undefined && { passphrase_identity: passphraseIdentity }),
    rows: tables.flatMap(({ parts }) => parts).reduce((sum, { rows }) => sum + rows, 0),
    ...sizes,
  }
  await writeManifest(repository, manifest)
  return manifest
}

type Write = (name: string, content: AsyncIterable<Uint8Array>, onBytes?: (bytes: number) => void) => Promise<Part>

/** The snapshot is open only while the tables are read. */
async function backUpTables(
  services: BackupDependencies,
  { pieceBytes = PIECE_BYTES, report }: CreateOptions,
  write: Write,
) {
  const snapshot = await openSnapshot(services.db)
  try {
    const total = snapshot.tables.reduce((sum, { bytes }) => sum + bytes, 0)
    let done = 0
    const onBytes = (bytes: number) => {
      done += bytes
      report({ step: 'tables', done, total: Math.max(total, done) })
    }
    const tables = await snapshot.copy(pieceBytes, (name, rows) => write(name, rows, onBytes))
    const closedAccounts = await write('closed-accounts', snapshot.closedAccounts())
    return { tables, sequences: await snapshot.sequences(), photos: await snapshot.photos(), closedAccounts }
  } finally {
    await snapshot.close()
  }
}

interface WrittenPictures {
  readonly content: PictureContent
  readonly bytes: number
  readonly bytesNew: number
}

async function writeReferences(
  { pictures }: BackupDependencies,
  id: string,
  { repository, signal, report }: CreateOptions,
): Promise<WrittenPictures> {
  const path = `${backupFolder(id)}/pictures.list`
  let count = 0
  const onPicture = () => {
    count += 1
    report({ step: 'pictures', done: count, total: undefined })
  }
  const list = createByteCounter()
  await repository.write(path, list.count(referPictures(pictures, { onPicture, signal })))
  const { bytes: size, sha256 } = list.result()
  return { content: { path, size, sha256, count, missing: 0, referenced: true }, bytes: 0, bytesNew: 0 }
}

async function writePictures(
  { pictures, log }: BackupDependencies,
  id: string,
  { photos, previous }: { readonly photos: LocalPhotos; readonly previous: Manifest | undefined },
  { repository, recipients, signal, report }: CreateOptions,
): Promise<WrittenPictures> {
  const path = `${backupFolder(id)}/pictures.list`
  const totals = { count: 0, bytes: 0, bytesNew: 0, missing: 0 }
  const lines = backUpPictures(photos, {
    repository,
    recipients,
    pictures,
    previous: previous === undefined ? noPictures() : readPictureList(repository.read(previous.pictures.path)),
    onPicture: ({ bytes, isNew }) => {
      totals.count += 1
      totals.bytes += bytes
      if (isNew) totals.bytesNew += bytes
    },
    onPhoto: (done) => report({ step: 'photos', done, total: photos.count }),
    onMissing: (name) => {
      totals.missing += 1
      log.warn({ name }, 'picture of a photo is missing')
    },
    signal,
  })
  const list = createByteCounter()
  await repository.write(path, list.count(lines))
  const { bytes: size, sha256 } = list.result()
  const { count, missing, bytes, bytesNew } = totals
  return { content: { path, size, sha256, count, missing }, bytes, bytesNew }
}

function sizesOf(content: ManifestParts, pictures: WrittenPictures): Pick<Manifest, 'bytes' | 'bytes_new'> {
  const parts = listManifestParts(content).reduce((sum, { size }) => sum + size, pictures.content.size)
  return { bytes: parts + pictures.bytes, bytes_new: parts + pictures.bytesNew }
}

/** The newest backup whose list has pictures for the same recipients. Without one, the stored pictures are found by their names. */
async function findPrevious(repository: Repository, recipients: readonly string[]): Promise<Manifest | undefined> {
  for (const id of [...(await listBackupIds(repository))].reverse()) {
    const manifest = await findManifest(repository, id).catch(() => undefined)
    if (manifest === undefined || manifest.pictures.referenced || `${manifest.recipients}` !== `${recipients}`) continue
    if ((await repository.size(manifest.pictures.path)) === manifest.pictures.size) return manifest
  }
  return undefined
}

async function* jsonLines(items: AsyncIterable<object>): AsyncGenerator<Buffer> {
  for await (const item of items) yield Buffer.from(`${JSON.stringify(item)}\n`)
}

async function* singleLine(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(`${text}\n`)
}

async function* noPictures(): AsyncGenerator<PictureEntry> {}
