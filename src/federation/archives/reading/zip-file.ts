import type { Readable } from 'node:stream'
import yauzl from 'yauzl'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import type { ArchiveFile } from './archive-file.js'

export interface ZipEntry {
  /** The unchanged name in the zip: it may be a path, or any other text. */
  readonly name: string
  readonly bytes: number
  /** Neither a folder nor a link, and not encrypted. */
  readonly isPlainFile: boolean
  open(): Promise<Readable>
}

export interface OpenZip {
  /** Reads at most `max` entries; throws `too_many` beyond. */
  entries(max: number): AsyncGenerator<ZipEntry>
  close(): void
}

/** Opens a zip. Names are not checked by the library: one bad name would end the reading of all others. */
export async function openZip(file: ArchiveFile): Promise<OpenZip> {
  const options = { autoClose: false, decodeStrings: false }
  const zip = await orDamaged(() => yauzl.fromRandomAccessReaderPromise(new ZipReader(file), file.size, options))
  return {
    async *entries(max) {
      if (zip.entryCount > max) {
        throw new ArchiveError('too_many', `The zip has ${zip.entryCount} entries; at most ${max} are read.`)
      }
      const entries = zip.eachEntry()[Symbol.asyncIterator]()
      for (;;) {
        const next = await orDamaged(() => entries.next())
        if (next.done) return
        yield entryOf(zip, next.value)
      }
    },
    close: () => zip.close(),
  }
}

class ZipReader extends yauzl.RandomAccessReader {
  readonly #file: ArchiveFile

  constructor(file: ArchiveFile) {
    super()
    this.#file = file
  }

  override _readStreamForRange(start: number, end: number): Readable {
    return this.#file.read({ start, end })
  }
}

function entryOf(zip: yauzl.ZipFile, entry: yauzl.Entry): ZipEntry {
  const name = Buffer.from(entry.fileNameRaw).toString('utf8')
  const isUnix = entry.versionMadeBy >> 8 === UNIX
  const fileType = (entry.externalFileAttributes >>> 16) & FILE_TYPE
  const isSpecial = isUnix && fileType !== 0 && fileType !== REGULAR_FILE
  return {
    name,
    bytes: entry.uncompressedSize,
    isPlainFile: !name.endsWith('/') && !isSpecial && !entry.isEncrypted() && entry.canDecodeFileData(),
    open: () => orDamaged(() => zip.openReadStreamPromise(entry)),
  }
}

const UNIX = 3
const FILE_TYPE = 0o170000
const REGULAR_FILE = 0o100000

async function orDamaged<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read()
  } catch (cause) {
    throw new ArchiveError('broken_json', 'The zip file is damaged.', { cause })
  }
}
