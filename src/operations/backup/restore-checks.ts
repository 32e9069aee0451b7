import { migrations } from '../../../migrations/index.js'
import type { Config } from '../../config/config.js'
import { isRunning, readStoredAddress } from '../../config/stored-address.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { BackupError } from './backup-error.js'
import type { Manifest } from './manifest.js'

/** Checks that this version of the program with these settings may restore the backup. Nothing is written. */
export async function checkRestore(
  manifest: Manifest,
  config: Pick<Config, 'host' | 'dataDir' | 'databaseUrl'>,
): Promise<void> {
  if (manifest.host !== config.host) {
    throw new BackupError(
      `The backup is of the pod ${manifest.host}, and by the settings of this command the pod is ${config.host}: set POD_URL as the pod had it.`,
    )
  }
  const unknown = manifest.migrations.filter((name) => !migrations.has(name))
  if (unknown.length > 0) {
    throw new BackupError(
      `The backup (made by version ${manifest.version}) has tables of a version that is newer than this program: install that version or a later one.`,
    )
  }
  if (config.databaseUrl !== undefined) return
  const storedAddress = await readStoredAddress(config.dataDir)
  if (storedAddress !== undefined && isRunning(storedAddress)) {
    throw new BackupError(`The pod in ${config.dataDir} is running: stop it first.`)
  }
}

/** Whether the store has pictures. */
export async function hasPictures(pictures: Pick<PictureStorage, 'list'>): Promise<boolean> {
  return (await pictures.list('')).length > 0
}
