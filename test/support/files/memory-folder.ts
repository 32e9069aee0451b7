import { accessSync, constants, readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

export const MEMORY = '/dev/shm'
/** Required free space: ten times the space of one run. */
const MIN_FREE_BYTES = 2_000_000_000

/**
 * A folder in memory, or the temporary folder of the system. A run copies its database hundreds of times, and on disk,
 * creating and removing so many files takes longer than the tests.
 */
export function memoryFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= MIN_FREE_BYTES && allowsPrograms(MEMORY) ? MEMORY : tmpdir()
  } catch {
    return tmpdir() // the system has no such folder
  }
}

/** Whether programs may run in a folder. Containers often mount it with `noexec`. */
function allowsPrograms(folder: string): boolean {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
  const [, , , options = 'noexec'] = mounts.findLast((line) => line.split(' ')[1] === folder)?.split(' ') ?? []
  return !options.split(',').includes('noexec')
}
