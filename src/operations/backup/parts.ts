import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { BackupError, WrongIdentityError } from './backup-error.js'
import { decryptWith, encryptFor } from './encryption.js'
import type { Repository } from './repositories/repository.js'
import { countRows } from './rows.js'

/** A compressed and encrypted file of a backup. */
export interface Part {
  /** Path in the repository. */
  readonly path: string
  /** Bytes as they are stored. */
  readonly size: number
  readonly sha256: string
  /** Rows, bytes and hash of its content. */
  readonly rows: number
  readonly bytes: number
  readonly content_sha256: string
}

/** The cheapest level that is much smaller than the fastest one. */
const GZIP = { level: 4, chunkSize: 64 * 1024 } as const

interface WriteOptions {
  readonly repository: Repository
  readonly recipients: readonly string[]
  readonly onBytes: (bytes: number) => void
  readonly signal: AbortSignal
}

/** Compresses, encrypts and stores one part. No part is completely in memory. */
export async function writePart(
  { repository, recipients, onBytes, signal }: WriteOptions,
  name: string,
  content: AsyncIterable<Uint8Array>,
): Promise<Part> {
  const path = `${name}.gz${recipients.length > 0 ? '.age' : ''}`
  const contentBytes = createByteCounter(onBytes)
  const storedBytes = createByteCounter()
  await pipeline(
    content,
    contentBytes.count,
    createGzip(GZIP),
    encryptFor(recipients),
    storedBytes.count,
    (bytes: AsyncIterable<Uint8Array>) => repository.write(path, bytes),
    { signal },
  )
  const { rows, bytes, sha256: content_sha256 } = contentBytes.result()
  const { bytes: size, sha256 } = storedBytes.result()
  return { path, size, sha256, rows, bytes, content_sha256 }
}

/** Reads a file as it is stored. A file that is longer than the manifest says is not read to its end. */
export async function* readStored(
  repository: Repository,
  { path, size }: Pick<Part, 'path' | 'size'>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of repository.read(path)) {
    signal.throwIfAborted()
    bytes += chunk.length
    if (bytes > size) throw new BackupError(`the file has more than ${size} bytes.`)
    yield chunk
  }
}

interface ReadOptions {
  readonly repository: Repository
  /** Undefined: the backup is not encrypted. */
  readonly identities: readonly string[] | undefined
  readonly signal: AbortSignal
  /** Called with the size of each chunk of the content. */
  readonly onBytes?: (bytes: number) => void
}

/** Passes the content of a part on, and checks it against the manifest. */
export async function readPart(
  { repository, identities, signal, onBytes }: ReadOptions,
  part: Part,
  take: (content: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const storedBytes = createByteCounter()
  const contentBytes = createByteCounter(onBytes)
  try {
    await pipeline(
      readStored(repository, part, signal),
      storedBytes.count,
      decryptWith(identities),
      createGunzip(),
      contentBytes.count,
      take,
      { signal },
    )
  } catch (error) {
    if (error instanceof WrongIdentityError) throw error
    if (error instanceof BackupError) throw new BackupError(`${part.path}: ${error.message}`)
    if (isGzipError(error)) throw new BackupError(`${part.path}: the content cannot be decompressed.`)
    throw error
  }
  if (storedBytes.result().sha256 !== part.sha256) throw new BackupError(`${part.path}: the file was changed.`)
  const { rows, sha256 } = contentBytes.result()
  if (rows !== part.rows || sha256 !== part.content_sha256) {
    throw new BackupError(`${part.path}: the content is not the one of the manifest.`)
  }
}

/** Counts and hashes what passes. */
export function createByteCounter(onBytes: (bytes: number) => void = () => undefined) {
  const hash = createHash('sha256')
  let bytes = 0
  let rows = 0
  return {
    async *count(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of source) {
        hash.update(chunk)
        bytes += chunk.length
        rows += countRows(chunk)
        onBytes(chunk.length)
        yield chunk
      }
    },
    result: () => ({ bytes, rows, sha256: hash.digest('hex') }),
  }
}

function isGzipError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_')
}
