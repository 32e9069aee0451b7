import type { Readable } from 'node:stream'

/** Where pictures and uploads in progress are stored. Web and worker processes use the same store. */
export interface PictureStorage {
  readonly kind: 'folder' | 's3'
  /** Fails with a StartError if the store cannot be used. */
  check(): Promise<void>

  /** Streams an upload into the spool. Resolves with its file name there. */
  storeUpload(bytes: Readable, signal: AbortSignal): Promise<string>
  /** Reads the first bytes of an upload, at most `length`. */
  readUploadStart(file: string, length: number): Promise<Buffer>
  readUpload(file: string): Promise<Buffer>
  /** Missing files are not an error. */
  deleteUploads(files: Iterable<string>): Promise<void>
  /** Deletes uploads that are older than a time. Resolves with their number. */
  deleteOldUploads(before: Date): Promise<number>

  /** Writes pictures so that they survive a crash; `publish` gives them their names, and a failure needs `discard`. */
  prepare(pictures: ReadonlyMap<string, Buffer>): Promise<PreparedPictures>
  /** Writes one published picture. */
  write(name: string, bytes: Buffer): Promise<void>
  /** Undefined: there is no such picture. */
  read(name: string): Promise<Buffer | undefined>
  find(name: string): Promise<PictureFileInfo | undefined>
  /** `range` must lie within the picture. */
  open(name: string, range?: ByteRange): Promise<Readable | undefined>
  /** Missing pictures are not an error. */
  delete(names: readonly string[]): Promise<void>
  /** The names after a name, in order: some hundred at most; none: there are no more. */
  list(after: string): Promise<readonly ListedPicture[]>
  /** The local file in which an export is written before it is stored. */
  exportDraft(name: string): Promise<string>
  /** Bytes of the largest export that the store takes. */
  readonly maxExportBytes: number
  /** Stores a written draft, which is gone then. Exports are never published. */
  storeExport(name: string, draft: ExportDraft): Promise<void>
  openExport(name: string, range?: ByteRange): Promise<Readable | undefined>
  /** Deletes exports with their drafts. Missing ones are not an error. */
  deleteExports(names: readonly string[]): Promise<void>

  /**
   * An address at which the store itself serves the picture for some minutes, to requests with this method. Undefined: it cannot, or has no
   * such picture.
   */
  linkTo?(name: string, method: 'GET' | 'HEAD'): Promise<string | undefined>
}

/** An export in a local file. */
interface ExportDraft {
  readonly path: string
  readonly bytes: number
  /** Hexadecimal. */
  readonly sha256: string
}

export interface PreparedPictures {
  publish(): Promise<void>
  discard(): Promise<void>
}

export interface PictureFileInfo {
  readonly bytes: number
  /** The ETag with its quotes. */
  readonly etag: string
  /** Hexadecimal; undefined: the store has not noted it. */
  readonly sha256?: string | undefined
}

export interface ListedPicture {
  readonly name: string
  readonly bytes: number
  readonly modifiedAt: Date
}

/** The first and the last byte. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}
