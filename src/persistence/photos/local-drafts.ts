import { readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasCode } from '../../errors/thrown.js'
import { DAY_MS } from '../../protocol/durations.js'

/** Files that this machine writes before they are sent to a store on others. Exports have the private key of an account. */
type DraftKind = 'export' | 'upload'

/** The number is the process. Files of earlier versions have none. */
const DRAFT_NAME = /^pod-(?:export|upload)-(?:([0-9]{1,10})-)?(.+)$/

/** No process writes and sends a file for so long. */
const MAX_AGE_MS = DAY_MS

export function draftPath(kind: DraftKind, name: string): string {
  return join(tmpdir(), `pod-${kind}-${process.pid}-${name}`)
}

/** Deletes the drafts of exports, also those of other processes. */
export async function deleteDrafts(names: readonly string[]): Promise<void> {
  for (const file of await readdir(tmpdir())) {
    const name = DRAFT_NAME.exec(file)?.[2]
    if (name !== undefined && names.includes(name)) await rm(join(tmpdir(), file), { force: true })
  }
}

/** Deletes the drafts of processes that have died. */
export async function deleteLeftDrafts(): Promise<void> {
  const startedAt = Date.now() - process.uptime() * 1_000
  for (const file of await readdir(tmpdir())) {
    const match = DRAFT_NAME.exec(file)
    if (match === null) continue
    const path = join(tmpdir(), file)
    try {
      const writtenAt = (await stat(path)).mtimeMs
      const pid = match[1] === undefined ? undefined : Number(match[1])
      // In a container that starts again, processes have the numbers of the earlier ones.
      const isLeft = pid === process.pid ? writtenAt < startedAt : pid !== undefined && !isRunning(pid)
      if (isLeft || writtenAt < Date.now() - MAX_AGE_MS) await rm(path, { force: true })
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'EACCES', 'EPERM')) throw error // gone, or of another user
    }
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !hasCode(error, 'ESRCH')
  }
}
