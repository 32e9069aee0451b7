import { folderOf, listBackupIds } from './manifest.js'
import type { Repository } from './repository.js'

const KEPT_MS = 2 * 86_400_000

/** Removes backups that were begun two days ago or earlier and never finished. */
export async function removeLeftovers(repository: Repository, now: Date): Promise<void> {
  for (const id of await listBackupIds(repository)) {
    if (beganAt(id) > now.getTime() - KEPT_MS) continue
    if ((await repository.size(`${folderOf(id)}/manifest.json`)) === undefined) await repository.remove(folderOf(id))
  }
}

function beganAt(id: string): number {
  return Date.parse(id.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z.*$/, '$1-$2-$3T$4:$5:$6Z'))
}
