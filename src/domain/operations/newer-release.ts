import { findLatestRelease } from '../../persistence/operations/latest-release.js'
import type { Services } from '../../services/services.js'

/** The newest known version of the program if it is newer than the running one. */
export async function findNewerRelease({ db }: Pick<Services, 'db'>, running: string): Promise<string | undefined> {
  const latest = await findLatestRelease(db)
  return latest !== undefined && isNewer(latest, running) ? latest : undefined
}

/** Compares major, minor and patch. */
function isNewer(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)))
  for (const index of [0, 1, 2]) {
    const difference = (one?.[index] ?? 0) - (other?.[index] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}
