import { DAY_MS } from '../../protocol/durations.js'
import { backupFolder, listBackupIds, parseStartTime } from './manifest.js'
import type { Repository } from './repositories/repository.js'

const RETENTION_MS = 2 * DAY_MS

/** Removes backups that were begun two days ago or earlier and never finished. */
export async function removeLeftovers(repository: Repository, now: Date): Promise<void> {
  for (const id of await listBackupIds(repository)) {
    if (parseStartTime(id).getTime() > now.getTime() - RETENTION_MS) continue
    if ((await repository.size(`${backupFolder(id)}/manifest.json`)) === undefined)
      await repository.remove(backupFolder(id))
  }
}
