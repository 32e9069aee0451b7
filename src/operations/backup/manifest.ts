import { createHash, randomInt } from 'node:crypto'
import type { Sequence } from '../../persistence/operations/table-catalogue.js'
import { BackupError } from './backup-error.js'
import type { Part } from './parts.js'
import type { Repository } from './repositories/repository.js'

/** The content of a backup. It is written last: a backup without it does not exist. */
export interface Manifest {
  readonly format: 1
  readonly id: string
  readonly host: string
  readonly version: string
  readonly postgresql: string
  readonly migrations: readonly string[]
  readonly started_at: string
  readonly finished_at: string
  /** Empty: the backup is not encrypted. */
  readonly recipients: readonly string[]
  /** Names of the settings that were set. */
  readonly settings: readonly string[]
  readonly tables: readonly TableContent[]
  readonly sequences: readonly Sequence[]
  /** Messages that were accepted and not stored yet. */
  readonly inbound: Part
  readonly secret_key: Part
  /** Guids of closed accounts. Absent in backups of earlier versions. */
  readonly closed_accounts?: Part
  readonly pictures: PictureContent
  /**
   * The identity that the passphrase decrypts, shared by the backups of a repository. Absent without a passphrase, and in earlier
   * versions.
   */
  readonly passphrase_identity?: StoredFile
  readonly rows: number
  /** Bytes of all files of the backup, and of the files that it has written. */
  readonly bytes: number
  readonly bytes_new: number
}

export interface TableContent {
  readonly name: string
  readonly columns: readonly string[]
  readonly parts: readonly Part[]
}

/** A file as it is stored. */
export interface StoredFile {
  readonly path: string
  readonly size: number
  readonly sha256: string
}

/** Path, size and hash are those of the list of pictures: see pictures.ts. */
export interface PictureContent extends StoredFile {
  readonly count: number
  /** Photos of which the pod had no file. */
  readonly missing: number
  /** The backup has the list only: the pictures stay in the S3 store of the pod. */
  readonly referenced?: true
}

const ID = /^\d{8}T\d{6}Z-[0-9a-f]{4}$/
const FOLDER = 'backups'
const MAX_MANIFEST_BYTES = 64 * 2 ** 20

/** Sorted by time, to the millisecond: the four digits are the milliseconds and a random rest (16 bits, 65 values for each millisecond). */
export function newBackupId(now: Date): string {
  const seconds = now.toISOString().replace(/\.\d+/, '').replaceAll(/[-:]/g, '')
  const suffix = now.getUTCMilliseconds() * 65 + randomInt(65)
  return `${seconds}-${suffix.toString(16).padStart(4, '0')}`
}

function isBackupId(text: string): boolean {
  return ID.test(text)
}

/** The start of a backup, from its id. */
export function parseStartTime(id: string): Date {
  return new Date(id.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z.*$/, '$1-$2-$3T$4:$5:$6Z'))
}

export function backupFolder(id: string): string {
  return `${FOLDER}/${id}`
}

/** The ids of all backups, and of those that were never finished; the oldest first. */
export async function listBackupIds(repository: Repository): Promise<readonly string[]> {
  return (await repository.list(FOLDER)).filter(isBackupId)
}

function manifestPath(id: string): string {
  return `${backupFolder(id)}/manifest.json`
}

export async function writeManifest(repository: Repository, manifest: Manifest): Promise<void> {
  const text = JSON.stringify({ ...manifest, checksum: checksumOf(manifest) }, null, 1)
  await repository.write(manifestPath(manifest.id), [Buffer.from(`${text}\n`)])
}

/** The manifest first: an interruption must leave no backup without its parts. */
export async function removeBackup(repository: Repository, id: string): Promise<void> {
  await repository.remove(manifestPath(id))
  await repository.remove(backupFolder(id))
}

/** Undefined: the backup was not finished. */
export async function findManifest(repository: Repository, id: string): Promise<Manifest | undefined> {
  const path = manifestPath(id)
  const size = await repository.size(path)
  if (size === undefined) return undefined
  if (size > MAX_MANIFEST_BYTES) throw new BackupError(`${path} is not a manifest: it is too large.`)
  const chunks: Buffer[] = []
  for await (const chunk of repository.read(path)) chunks.push(chunk)
  return readManifest(path, id, Buffer.concat(chunks).toString('utf8'))
}

/** The manifest of a backup that has to exist. */
export async function requireManifest(repository: Repository, id: string): Promise<Manifest> {
  const manifest = isBackupId(id) ? await findManifest(repository, id) : undefined
  if (manifest === undefined) {
    throw new BackupError(`There is no complete backup ${id} in ${repository.place}: see "pod backup list".`)
  }
  return manifest
}

function readManifest(path: string, id: string, text: string): Manifest {
  const { checksum, ...manifest }: Manifest & { readonly checksum?: string } = parse(path, text)
  if (manifest.format !== 1) {
    throw new BackupError(`${path} has another format than this version can read: use a newer version.`)
  }
  if (checksum !== checksumOf(manifest)) throw new BackupError(`${path} was changed.`)
  if (manifest.id !== id) throw new BackupError(`${path} belongs to the backup ${manifest.id}.`)
  return manifest
}

function parse(path: string, text: string) {
  try {
    return JSON.parse(text)
  } catch {
    throw new BackupError(`${path} was changed: it cannot be read.`)
  }
}

function checksumOf(manifest: Manifest): string {
  return createHash('sha256').update(JSON.stringify(manifest)).digest('hex')
}

export type ManifestParts = Pick<Manifest, 'tables' | 'inbound' | 'secret_key' | 'closed_accounts'>

/** All parts with rows or texts; pictures are listed in a file of their own. */
export function listManifestParts({ tables, inbound, secret_key, closed_accounts }: ManifestParts): readonly Part[] {
  const optional = closed_accounts === undefined ? [] : [closed_accounts]
  return [...tables.flatMap(({ parts }) => parts), inbound, secret_key, ...optional]
}

/** All files with a known path, without the pictures themselves. */
export function listManifestFiles(manifest: Manifest): readonly StoredFile[] {
  const { pictures, passphrase_identity: identity } = manifest
  return [...listManifestParts(manifest), pictures, ...(identity === undefined ? [] : [identity])]
}

/** The age of a backup in full hours. */
export function ageInHours({ started_at }: Pick<Manifest, 'started_at'>, now: Date): number {
  return Math.floor((now.getTime() - Date.parse(started_at)) / 3_600_000)
}
