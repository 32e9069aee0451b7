import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { Cluster } from './cluster.js'

/** The first process of a running server; all others are its children. */
export interface Postmaster {
  readonly pid: number
  /** Not there yet while the server is starting. */
  readonly port: number | undefined
}

/** The running server of this cluster. The pid file is verified: the pid may belong to another process. */
export async function findPostmaster(cluster: Cluster): Promise<Postmaster | undefined> {
  const lines = await readPidFile(cluster)
  const pid = Number(lines?.[0])
  if (!(await isPostmaster(pid, cluster))) return undefined
  return { pid, port: Number(lines?.[3]) || undefined }
}

/** Compares the command line: another process may have got the same pid later. */
export async function isPostmaster(pid: number, cluster: Cluster): Promise<boolean> {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    if (process.platform === 'win32') return process.kill(pid, 0)
    if (process.platform !== 'linux') {
      const { stdout } = await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)])
      return stdout.includes(`postgres -D ${cluster.folder} `)
    }
    const [program, ...args] = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0')
    return basename(program ?? '') === 'postgres' && args[0] === '-D' && args[1] === cluster.folder
  } catch {
    return false
  }
}

/**
 * A killed server leaves its pid file, and PostgreSQL does not start while any process of the same user has that pid. PostgreSQL takes
 * the pid of its parent for stale, so this process writes its own. The other lines stay: with them PostgreSQL detects running children.
 */
export async function disownStalePid(cluster: Cluster): Promise<void> {
  const lines = await readPidFile(cluster)
  if (lines === undefined || (await findPostmaster(cluster))) return
  const now = await readPidFile(cluster)
  if (now?.join('\n') !== lines.join('\n')) return
  await writeFile(pidFileOf(cluster), [process.pid, ...lines.slice(1)].join('\n'))
}

/** The last port if it is free, so that processes find the server at the same address after a crash. */
export async function choosePort(cluster: Cluster): Promise<number> {
  const options = await readFile(join(cluster.folder, 'postmaster.opts'), 'utf8').catch(() => '')
  const last = Number(/"-p" "(\d+)"/.exec(options)?.[1])
  if (last && (await freePort(last)) !== undefined) return last
  const port = await freePort(0)
  if (port === undefined) throw new Error('No port is free on 127.0.0.1.')
  return port
}

async function freePort(wanted: number): Promise<number | undefined> {
  const probe = createServer()
  return new Promise((resolve) => {
    probe.once('error', () => resolve(undefined))
    probe.listen(wanted, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' ? address?.port : undefined))
    })
  })
}

async function readPidFile(cluster: Cluster): Promise<readonly string[] | undefined> {
  const text = await readFile(pidFileOf(cluster), 'utf8').catch(() => undefined)
  return text?.split('\n')
}

function pidFileOf(cluster: Cluster): string {
  return join(cluster.folder, 'postmaster.pid')
}
