import { existsSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Config } from '../../config/config.js'
import { makeFolder } from '../../config/make-folder.js'
import { migrateQueue } from '../../jobs/queues/queue-schema.js'
import { openDatabase, openUnlimitedSession } from '../../persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../persistence/database/limits.js'
import { migrate, migrateTo } from '../../persistence/database/migrate.js'
import { analyzeTables } from '../../persistence/operations/load-tables.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import {
  deleteAccountTokens,
  deleteAllAuthorizations,
  dropUnfinished,
  inspectRestoreTarget,
  listConnectedProcesses,
  markRestore,
  moveAside,
  unmarkRestore,
} from '../../persistence/operations/restore-target.js'
import { openPictureStorage } from '../../persistence/photos/open-pictures.js'
import { findStoredKey, secretKeyFile, storeSecretKey } from '../../services/secrets.js'
import { BackupError } from './backup-error.js'
import { closeLaterClosedAccounts } from './closed-accounts.js'
import type { Manifest } from './manifest.js'
import { readPart } from './parts.js'
import type { Repository } from './repositories/repository.js'
import { hasPictures } from './restore-checks.js'
import { restorePictures } from './restore-pictures.js'
import { restoreTables } from './restore-tables.js'

export interface RestoreOptions {
  readonly repository: Repository
  readonly identities: readonly string[] | undefined
  /** A database, pictures or a key that are there are renamed; otherwise they are refused. */
  readonly replace: boolean
  readonly shouldEndTokens: boolean
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

export interface Restored {
  readonly rows: number
  readonly messages: number
  readonly pictures: number
  /** Pictures that are no longer in the repository, or were changed. */
  readonly lostPictures: number
  /** Accounts that were closed after the backup. */
  readonly closedAgain: number
  /** The new names of the data that were there before. */
  readonly renamed: readonly string[]
}

type RestoreConfig = Pick<
  Config,
  'dataDir' | 'uploadsDir' | 'secretKey' | 'storage' | 'uploadsFallback' | 's3' | 'isolated'
>

/** This file is in the folder of pictures until the restore is finished, so that an interrupted restore can be repeated. */
const MARK_FILE = 'unfinished-restore'

/**
 * Restores a backup into an empty database and an empty folder of pictures. Until the end the database has a mark, with which no pod
 * starts: an interrupted restore can be repeated.
 */
export async function restoreBackup(
  manifest: Manifest,
  config: RestoreConfig,
  databaseUrl: string,
  options: RestoreOptions,
): Promise<Restored> {
  const secretKey = await readSecretKeyPart(manifest, options)
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: databaseUrl, applicationName: 'pod restore' })
  try {
    const newNames = await prepareTarget(db, config, { manifest, secretKey }, options)
    await markRestore(db, manifest.id)
    // Before the rows: a pod that starts before this point would make another key, which a repeated restore refuses.
    if (config.secretKey === undefined) await storeSecretKey(config.dataDir, secretKey)
    await makeFolder(config.uploadsDir, 0o755)
    await writeFile(join(config.uploadsDir, MARK_FILE), `${manifest.id}\n`)
    await migrateTo(db, manifest.migrations)
    const loadedParts = await load(db, manifest, config, options)
    options.report({ step: 'statistics', done: 0, total: undefined })
    await analyze(db)
    await migrate(db)
    await deleteAccountTokens(db)
    await migrateQueue(databaseUrl)
    const closedAgain = await closeLaterClosedAccounts(db, manifest, options)
    await deleteRestoreMark(db)
    await rm(join(config.uploadsDir, MARK_FILE), { force: true })
    return { ...loadedParts, closedAgain, renamed: newNames }
  } finally {
    await db.destroy()
  }
}

async function load(
  db: Knex,
  manifest: Manifest,
  config: RestoreConfig,
  options: RestoreOptions,
): Promise<Omit<Restored, 'renamed' | 'closedAgain'>> {
  const session = await openUnlimitedSession(db, 'load')
  try {
    await session.query('begin')
    const messages = await restoreTables(session, manifest, options)
    if (options.shouldEndTokens) await deleteAllAuthorizations(session)
    const { pictures, lost } = await restorePictures(session, manifest, openPictureStorage(config), options)
    await session.query('commit')
    return { rows: manifest.rows, messages, pictures, lostPictures: lost }
  } finally {
    await session.end()
  }
}

async function readSecretKeyPart({ secret_key }: Manifest, options: RestoreOptions): Promise<string> {
  const chunks: Uint8Array[] = []
  await readPart(options, secret_key, async (content) => {
    for await (const chunk of content) chunks.push(chunk)
  })
  return Buffer.concat(chunks).toString('utf8').trimEnd()
}

/** Refuses a target that is not empty, or renames its data. Everything is checked before anything is changed. */
async function prepareTarget(
  db: Knex,
  config: RestoreConfig,
  { manifest, secretKey }: { readonly manifest: Manifest; readonly secretKey: string },
  { replace }: RestoreOptions,
): Promise<readonly string[]> {
  const { dataDir, uploadsDir, secretKey: configuredKey } = config
  const processes = await listConnectedProcesses(db)
  if (processes.length > 0) {
    throw new BackupError(`The database is in use by ${processes.join(' and ')}: stop the pod first.`)
  }
  const target = await inspectRestoreTarget(db)
  const isRepeated = existsSync(join(uploadsDir, MARK_FILE))
  const hasReferencedPictures = manifest.pictures.referenced === true
  const hasOtherPictures = !hasReferencedPictures && !isRepeated && (await hasPictures(openPictureStorage(config)))
  const storedKey = configuredKey === undefined ? await findStoredKey(dataDir) : undefined
  const hasOtherKey = storedKey !== undefined && storedKey !== secretKey

  if (configuredKey !== undefined && configuredKey !== secretKey) {
    throw new BackupError(
      'SECRET_KEY is not the key of the backup: leave it out, and the key is restored to the data folder, or set it as the pod had it.',
    )
  }
  const conflicts = [
    ...(target === 'full' ? ['the database has tables'] : []),
    ...(hasOtherPictures ? [config.storage === 's3' ? 'the S3 store has pictures' : `${uploadsDir} has pictures`] : []),
    ...(hasOtherKey ? [`${dataDir} has another secret key`] : []),
  ]
  if (conflicts.length > 0 && !replace) {
    throw new BackupError(
      `A backup is restored into an empty database and folder only, and ${conflicts.join(', ')}. With --replace they are renamed.`,
    )
  }

  if (hasOtherPictures && config.storage === 's3') {
    throw new BackupError('The S3 store has pictures, which cannot be renamed: set S3_PREFIX to another path.')
  }

  const suffix = manifest.id.toLowerCase().replaceAll('-', '_')
  const newNames: string[] = []
  if (target === 'unfinished') await dropUnfinished(db)
  if (target === 'full') newNames.push(...(await moveAside(db, `${suffix}_${Date.now()}`)))
  if (hasOtherPictures) newNames.push(await renameReplaced(join(uploadsDir, 'images')))
  if (hasOtherKey) newNames.push(await renameReplaced(secretKeyFile(dataDir)))
  return newNames
}

async function renameReplaced(path: string): Promise<string> {
  const name = `${path}.replaced-${new Date().toISOString().replaceAll(/[:.]/g, '-')}`
  await rename(path, name)
  return name
}

/** Deletes the mark that keeps the pod from starting. */
async function deleteRestoreMark(db: Knex): Promise<void> {
  const session = await openUnlimitedSession(db, 'end')
  try {
    await unmarkRestore(session)
  } finally {
    await session.end()
  }
}

async function analyze(db: Knex): Promise<void> {
  const session = await openUnlimitedSession(db, 'analyze')
  try {
    await analyzeTables(session)
  } finally {
    await session.end()
  }
}
