import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/config/config.js'
import { StartError } from '../src/errors/start-error.js'
import { messageOf } from '../src/errors/thrown.js'
import { checkRestoredPod } from '../src/operations/backup/check-restored-pod.js'
import type { Manifest } from '../src/operations/backup/manifest.js'
import { readPictureList } from '../src/operations/backup/pictures.js'
import { type RestoreOptions, restoreBackup } from '../src/operations/backup/restore-backup.js'
import { borrowDatabase } from './borrow-database.js'
import { withConfiguredPod } from './with-pod.js'

/**
 * Restores a backup into a temporary embedded PostgreSQL, starts the copy in isolated mode, and returns the faults of its pages and
 * keys in sentences. Everything is removed afterwards.
 */
export async function startRestoredCopy(
  manifest: Manifest,
  options: Pick<RestoreOptions, 'repository' | 'identities' | 'signal' | 'report'>,
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-verify-'))
  const config = readConfig({ POD_URL: `https://${manifest.host}`, DATA_DIR: folder, ISOLATED: 'true' })
  try {
    const database = await borrowDatabase(config)
    try {
      await restoreBackup(manifest, config, database.url, { ...options, replace: false, shouldEndTokens: false })
      const photoIds = await listRestoredPhotos(manifest, options)
      return await withConfiguredPod({ ...config, databaseUrl: database.url }, (services) =>
        checkRestoredPod(services, photoIds),
      )
    } catch (error) {
      if (error instanceof StartError) return [messageOf(error)]
      throw error
    } finally {
      await database.release()
    }
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** How many photos of the backup are looked up; the page check requests one of them. */
const MAX_LISTED_PHOTOS = 1_000

async function listRestoredPhotos(
  { pictures }: Manifest,
  { repository }: Pick<RestoreOptions, 'repository'>,
): Promise<readonly number[]> {
  if (pictures.referenced) return []
  const photoIds = new Set<number>()
  for await (const { photoId } of readPictureList(repository.read(pictures.path))) {
    photoIds.add(photoId)
    if (photoIds.size === MAX_LISTED_PHOTOS) break
  }
  return [...photoIds]
}
