import { BackupError } from './backup-error.js'
import {
  backupFolder,
  findManifest,
  listBackupIds,
  listManifestFiles,
  type Manifest,
  parseStartTime,
} from './manifest.js'
import type { Repository } from './repositories/repository.js'

export interface ListedBackup {
  readonly manifest: Manifest
  /** Every file is there with its size; the pictures themselves are not looked for. */
  readonly complete: boolean
  /** When `verify` found no fault. */
  readonly verifiedAt: Date | null
}

/** The finished backups, the newest first. Throws if one has a damaged manifest, unless `onDamaged` takes the error. */
export async function listBackups(
  repository: Repository,
  onDamaged?: (error: BackupError) => void,
): Promise<readonly ListedBackup[]> {
  const backups: ListedBackup[] = []
  for (const id of [...(await listBackupIds(repository))].reverse()) {
    const manifest = await findManifest(repository, id).catch((error: unknown) => {
      if (onDamaged === undefined || !(error instanceof BackupError)) throw error
      onDamaged(error)
      return undefined
    })
    if (manifest === undefined) continue
    backups.push({
      manifest,
      complete: await isComplete(repository, manifest),
      verifiedAt: await findVerification(repository, id),
    })
  }
  return backups
}

async function isComplete(repository: Repository, manifest: Manifest): Promise<boolean> {
  for (const { path, size } of listManifestFiles(manifest)) {
    if ((await repository.size(path)) !== size) return false
  }
  return true
}

/** The start of the newest backup that `verify` has found complete. */
export async function findNewestVerified(repository: Repository): Promise<Date | undefined> {
  for (const id of [...(await listBackupIds(repository))].reverse()) {
    if ((await repository.size(verificationPath(id))) !== undefined) return parseStartTime(id)
  }
  return undefined
}

const verificationPath = (id: string) => `${backupFolder(id)}/verified`

export async function recordVerification(repository: Repository, id: string, now: Date): Promise<void> {
  await repository.write(verificationPath(id), [Buffer.from(`${now.toISOString()}\n`)])
}

async function findVerification(repository: Repository, id: string): Promise<Date | null> {
  if ((await repository.size(verificationPath(id))) === undefined) return null
  let text = ''
  for await (const chunk of repository.read(verificationPath(id))) text += chunk.toString('utf8')
  const time = new Date(text.trim())
  return Number.isNaN(time.getTime()) ? null : time
}
