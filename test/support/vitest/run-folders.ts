import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { findPostmaster } from '../../../embedded-postgres/postmaster.js'
import { MEMORY, memoryFolder } from '../files/memory-folder.js'

const NAME = 'pod-test-'
const PID_FILE = 'postmaster.pid'
const REMOVE = { recursive: true, force: true, maxRetries: 20, retryDelay: 25 } as const

/** A temporary folder of a test run. It is removed when the run ends, or by the next run if this one was killed. */
export async function makeRunFolder(runPid: number): Promise<string> {
  return mkdtemp(join(memoryFolder(), `${NAME}${runPid}-`))
}

/** Removes the folders synchronously, for the event 'exit'. After Ctrl-C no teardown runs. */
export function removeRunFoldersNow(runPid: number): void {
  for (const folder of runFolders().filter((name) => runOf(name) === runPid)) {
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (basename(file) === PID_FILE) quit(Number.parseInt(readFileSync(join(folder, file), 'utf8'), 10))
    }
    rmSync(folder, REMOVE)
  }
}

/** Removes the folders of killed runs. Folders of other users are skipped. */
export async function sweepKilledRuns(): Promise<void> {
  for (const folder of runFolders().filter((name) => !isAlive(runOf(name)))) {
    const files = await readdir(folder, { recursive: true }).catch(() => [])
    for (const file of files.filter((name) => basename(name) === PID_FILE)) {
      const left = await findPostmaster({ folder: join(folder, dirname(file)), password: '' })
      if (left) quit(left.pid)
    }
    await rm(folder, REMOVE).catch(() => undefined)
  }
}

function runFolders(): readonly string[] {
  return [...new Set([MEMORY, tmpdir()])]
    .filter((place) => existsSync(place))
    .flatMap((place) => readdirSync(place).map((name) => join(place, name)))
    .filter((path) => basename(path).startsWith(NAME) && runOf(path) > 0)
}

function runOf(folder: string): number {
  return Number.parseInt(basename(folder).slice(NAME.length), 10)
}

function quit(pid: number): void {
  try {
    process.kill(pid, 'SIGQUIT')
  } catch {
    // The process has ended.
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
