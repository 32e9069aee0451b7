import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, type QueryResultRow } from 'pg'
import { afterAll, afterEach } from 'vitest'
import { findPostmaster } from '../../embedded-postgres/postmaster.js'
import { makeRunFolder } from '../support/vitest/run-folders.js'

export const UNSHARE = 'unshare'
export const NAMELESS = ['-U', '--map-user=54321', '--map-group=54321']

const folders: string[] = []
const processes: ChildProcess[] = []

/** A temporary folder for the tests of a file, with blanks and umlauts in its path; a server in its `var` ends with the test. */
export async function makeFolder(): Promise<string> {
  const runFolder = await makeRunFolder(process.ppid)
  folders.push(runFolder)
  // Like a project folder: accessible for all users.
  await chmod(runFolder, 0o755)
  const folder = join(runFolder, 'pöd data')
  await mkdir(folder, { mode: 0o755 })
  return folder
}

afterEach(async () => {
  for (const process of processes.splice(0)) process.kill('SIGKILL')
  for (const folder of folders) {
    const pid = await postmasterIn(join(folder, 'pöd data/var'))
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
  }
})

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true, maxRetries: 20 })
})

export async function pidFileLines(dataDir: string): Promise<readonly string[]> {
  return (await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')
}

export async function query<Row extends QueryResultRow>(url: string, text: string): Promise<readonly Row[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Row>(text)).rows
  } finally {
    await client.end()
  }
}

/** The started server, or the reason why it was not started. */
export type StartOutcome =
  | { readonly url: string; readonly pid: number; readonly startedHere: boolean }
  | { readonly refusal: string }

/** Another process that starts the server of this folder and keeps running. */
export function startElsewhere(
  dataDir: string,
  { nameless = false } = {},
): { readonly process: ChildProcess; readonly outcome: Promise<StartOutcome> } {
  const child = fork(new URL('hold-server.ts', import.meta.url), [dataDir], {
    execArgv: ['--import', 'tsx'],
    // As in a container that runs its programs as a user without a passwd entry.
    ...(nameless && { execPath: UNSHARE, execArgv: [...NAMELESS, process.execPath, '--import', 'tsx'] }),
  })
  processes.push(child)
  return { process: child, outcome: once(child, 'message').then(([outcome]) => outcome) }
}

export async function killNow(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

async function postmasterIn(dataDir: string): Promise<number | undefined> {
  return (await findPostmaster({ folder: join(dataDir, 'postgres'), password: '' }))?.pid
}
