import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { SecretOwner, Services } from '../../../services/services.js'
import type { ArchiveFile } from './archive-file.js'

/** Bytes that are encrypted together. Each piece can be read alone. */
const PIECE = 64 * 1024
/** Nonce and tag that `Secrets.encryptBytes` adds. */
const SEAL_BYTES = 28
const SEALED_PIECE = PIECE + SEAL_BYTES

/** A file on the disk that is encrypted piece by piece, with the key of the pod. */
export interface EncryptedFilePath {
  readonly path: string
  /** Pieces of one file open neither in another file nor at another place. */
  readonly name: string
}

function ownerOf({ name }: EncryptedFilePath, piece: number): SecretOwner {
  return `import ${name} ${piece}`
}

/** Writes bytes from an offset on, and removes the bytes after them. Resolves with the length of the content. */
export async function writeSealed(
  { secrets }: Pick<Services, 'secrets'>,
  file: EncryptedFilePath,
  offset: number,
  source: AsyncIterable<Buffer>,
): Promise<number> {
  const handle = await open(file.path, constants.O_RDWR | constants.O_CREAT, 0o600)
  try {
    let piece = Math.floor(offset / PIECE)
    let pending = (await readPiece({ secrets }, file, handle, piece)).subarray(0, offset % PIECE)
    const writePiece = async (bytes: Buffer) => {
      const sealedBytes = secrets.encryptBytes(bytes, ownerOf(file, piece))
      if (sealedBytes.length !== bytes.length + SEAL_BYTES)
        throw new Error('The length of encrypted bytes has changed.')
      await handle.write(sealedBytes, 0, sealedBytes.length, piece * SEALED_PIECE)
      piece += 1
    }
    for await (const bytes of source) {
      pending = Buffer.concat([pending, bytes])
      for (; pending.length >= PIECE; pending = pending.subarray(PIECE)) await writePiece(pending.subarray(0, PIECE))
    }
    const length = piece * PIECE + pending.length
    await handle.truncate(sealedLength(length))
    if (pending.length > 0) await writePiece(pending)
    await handle.sync()
    return length
  } finally {
    await handle.close()
  }
}

function sealedLength(length: number): number {
  const rest = length % PIECE
  return Math.floor(length / PIECE) * SEALED_PIECE + (rest === 0 ? 0 : rest + SEAL_BYTES)
}

/** Empty: the file has no such piece. */
async function readPiece(
  { secrets }: Pick<Services, 'secrets'>,
  file: EncryptedFilePath,
  handle: FileHandle,
  piece: number,
): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(SEALED_PIECE), 0, SEALED_PIECE, piece * SEALED_PIECE)
  if (bytesRead === 0) return Buffer.alloc(0)
  return secrets.decryptBytes(buffer.subarray(0, bytesRead), ownerOf(file, piece))
}

export async function openSealedFile(
  sealing: Pick<Services, 'secrets'>,
  file: EncryptedFilePath,
): Promise<ArchiveFile> {
  const { size: sealedSize } = await stat(file.path)
  const rest = sealedSize % SEALED_PIECE
  const size = Math.floor(sealedSize / SEALED_PIECE) * PIECE + Math.max(0, rest - SEAL_BYTES)

  async function* read(start: number, end: number): AsyncGenerator<Buffer> {
    const handle = await open(file.path)
    try {
      for (let at = start; at < end; ) {
        const piece = Math.floor(at / PIECE)
        const from = at - piece * PIECE
        const bytes = (await readPiece(sealing, file, handle, piece)).subarray(from, from + end - at)
        if (bytes.length === 0) return
        yield bytes
        at += bytes.length
      }
    } finally {
      await handle.close()
    }
  }

  return {
    size,
    read: ({ start, end } = { start: 0, end: size }) =>
      Readable.from(read(start, Math.min(end, size)), { objectMode: false }),
  }
}
