import { createHash } from 'node:crypto'
import { PassThrough, pipeline, type Readable, Transform } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ArchiveFile } from './archive-file.js'
import { openZip } from './zip-file.js'

/** The text of an archive, and the size and digest of its file after the text was read to its end. */
export interface OpenArchiveFile {
  readonly text: AsyncIterable<string>
  fileInfo(): { readonly bytes: number; readonly sha256: string }
}

/** Opens an archive by its content: gzip, also of several members, a zip with a JSON file, or JSON. */
export async function openArchiveFile(file: ArchiveFile, maxBytes: number): Promise<OpenArchiveFile> {
  const { size } = file
  if (size > maxBytes) throw tooLarge(`The file is larger than ${maxBytes} bytes.`)
  const start = await readStart(file)

  const digest = createHash('sha256')
  const isZip = start.equals(ZIP_START)
  if (isZip) for await (const chunk of file.read()) digest.update(chunk)
  const raw = isZip ? await openJsonOfZip(file) : digestWhileReading(file.read(), digest)
  const isGzip = start[0] === 0x1f && start[1] === 0x8b
  const bytes = isGzip ? pipeThrough(raw, createGunzip()) : raw
  return {
    text: decode(limitExpansion(bytes, size)),
    fileInfo: () => ({ bytes: size, sha256: digest.copy().digest('hex') }),
  }
}

const ZIP_START = Buffer.from('PK\x03\x04')

async function readStart(file: ArchiveFile): Promise<Buffer> {
  if (file.size === 0) return Buffer.alloc(0)
  const chunks: Buffer[] = []
  for await (const chunk of file.read({ start: 0, end: ZIP_START.length })) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function digestWhileReading(source: Readable, digest: ReturnType<typeof createHash>): Readable {
  const through = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      digest.update(chunk)
      done(null, chunk)
    },
  })
  return pipeThrough(source, through)
}

/** Reading throws the errors of the source and of the stream, also those from before the reading began. */
function pipeThrough(source: Readable, through: Transform): Transform {
  return pipeline(source, through, () => undefined).on('error', () => undefined)
}

/** Opens the first JSON file of the zip. Folders that operating systems add, such as `__MACOSX`, are skipped. */
async function openJsonOfZip(file: ArchiveFile): Promise<Readable> {
  const zip = await openZip(file)
  for await (const { name, isPlainFile, open: openEntry } of zip.entries(IMPORT_LIMITS.photoEntries)) {
    if (!isPlainFile || !name.endsWith('.json') || name.startsWith('__') || name.includes('/__')) continue
    const content = await openEntry()
    content.once('close', () => zip.close())
    return pipeThrough(content, new PassThrough())
  }
  zip.close()
  throw new ArchiveError('broken_json', 'The zip contains no file whose name ends in .json.')
}

/** A small file that expands to a very large one is an attack. */
async function* limitExpansion(bytes: Readable, compressed: number): AsyncGenerator<Buffer> {
  let expandedBytes = 0
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      expandedBytes += chunk.length
      if (expandedBytes > IMPORT_LIMITS.expandedBytes)
        throw tooLarge(`The file expands to more than ${IMPORT_LIMITS.expandedBytes} bytes.`)
      if (expandedBytes > IMPORT_LIMITS.ratioFromBytes && expandedBytes > compressed * IMPORT_LIMITS.expansionRatio) {
        throw tooLarge(`The file expands to more than ${IMPORT_LIMITS.expansionRatio} times its size.`)
      }
      yield chunk
    }
  } catch (error) {
    if (error instanceof ArchiveError) throw error
    throw new ArchiveError('broken_json', 'The compressed file is damaged.', { cause: error })
  }
}

/** Decodes UTF-8 without the byte order mark. */
async function* decode(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const orFault = (chunk: Buffer | undefined) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true })
    } catch (cause) {
      throw new ArchiveError('not_utf8', 'The file is not in UTF-8.', { cause })
    }
  }
  for await (const chunk of bytes) yield orFault(chunk)
  yield orFault(undefined)
}

function tooLarge(message: string): ArchiveError {
  return new ArchiveError('too_large', message)
}
