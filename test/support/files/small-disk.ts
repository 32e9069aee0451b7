import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

/** A small file system that can be filled. */
export interface SmallDisk extends AsyncDisposable {
  readonly folder: string
  /** Writes a file until the disk is full. */
  fill(): Promise<void>
  /** Deletes the filler. */
  clear(): Promise<void>
  close(): Promise<void>
}

const MEGABYTE = Buffer.alloc(2 ** 20)
const MIN_CHUNK = 4_096

/**
 * Mounts a file system in memory. Undefined if this user may not mount, not even in a new namespace. With `apart: false` no namespace
 * is used, for tests of real paths.
 */
export async function openSmallDisk(
  megabytes: number,
  { apart = true }: { readonly apart?: boolean } = {},
): Promise<SmallDisk | undefined> {
  const mountPoint = await mkdtemp(join(tmpdir(), 'pod-test-disk-'))
  const mounted =
    (await mountHere(mountPoint, megabytes)) ?? (apart ? await mountApart(mountPoint, megabytes) : undefined)
  if (mounted === undefined) {
    await rm(mountPoint, { recursive: true })
    return undefined
  }
  const { folder, unmount } = mounted
  await chmod(folder, 0o777)
  const filler = join(folder, 'filler')
  process.once('exit', unmount)
  async function close(): Promise<void> {
    process.off('exit', unmount)
    unmount()
    await rm(mountPoint, { recursive: true, force: true }).catch(() => {}) // the helper process may not have ended yet
  }
  return {
    folder,
    async fill() {
      const file = await open(filler, 'a')
      try {
        for (let chunk = MEGABYTE; chunk.length >= MIN_CHUNK; chunk = chunk.subarray(0, chunk.length / 2)) {
          for (let isFull = false; !isFull; ) isFull = await file.write(chunk).then(() => false, isNoSpace)
        }
      } finally {
        await file.close()
      }
    },
    clear: () => rm(filler, { force: true }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

interface Mounted {
  readonly folder: string
  unmount(): void
}

/** Mounts a file system, which needs root. */
async function mountHere(folder: string, megabytes: number): Promise<Mounted | undefined> {
  const mounting = promisify(execFile)('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=777`, 'tmpfs', folder])
  const isMounted = await mounting.then(
    () => true,
    () => false,
  )
  return isMounted ? { folder, unmount: () => void execFileSync('umount', ['--lazy', folder]) } : undefined
}

/** Mounts in the namespaces of a helper process; other processes reach the files through /proc. */
async function mountApart(mountPoint: string, megabytes: number): Promise<Mounted | undefined> {
  const script = `mount -t tmpfs -o size=${megabytes}m,mode=777 tmpfs '${mountPoint}' && echo mounted && exec cat`
  const holder = spawn('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', script], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  holder.on('error', () => {})
  const [line] = await Promise.race([
    once(createInterface({ input: holder.stdout }), 'line'),
    once(holder, 'close'),
  ]).catch(() => [])
  if (line !== 'mounted') return undefined
  return { folder: `/proc/${holder.pid}/root${mountPoint}`, unmount: () => void holder.kill('SIGKILL') }
}

function isNoSpace(error: unknown): true {
  if (error instanceof Error && 'code' in error && error.code === 'ENOSPC') return true
  throw error
}
