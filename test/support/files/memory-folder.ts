import { accessSync, constants, readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

export const MEMORY = '/dev/shm'
/** Ten times what one run holds at once. */
const ENOUGH_BYTES = 2_000_000_000

/**
 * A folder in memory, or the temporary folder of the system. A run copies its database hundreds of times, and on disk,
 * creating and removing so many files takes longer than the tests.
 */
export function memoryFolder(): string {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= ENOUGH_BYTES && runsPrograms(MEMORY) ? MEMORY : tmpdir()
  } catch {
    return tmpdir() // not every system has one
  }
}

/** Containers often mount it in a way that forbids that. */
function runsPrograms(folder: string): boolean {
  const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
  const [, , , options = 'noexec'] = mounts.findLast((line) => line.split(' ')[1] === folder)?.split(' ') ?? []
  return !options.split(',').includes('noexec')
}
