import { accessSync, constants, readFileSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'

export const MEMORY = '/dev/shm'
/** A whole run holds a tenth of it at once. */
const ENOUGH_BYTES = 2_000_000_000

/**
 * Where files live in memory, or the temporary folder of the system. A run copies its database hundreds of times, and on
 * disk making so many files where as many have just been removed takes longer than the tests on them.
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
