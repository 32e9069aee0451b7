import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'

/** A file that is read from any place, such as an archive or a zip of photos. */
export interface ArchiveFile {
  readonly size: number
  /** Reads from `start` up to `end`, which is excluded. */
  read(range?: { readonly start: number; readonly end: number }): Readable
}

export async function openPlainFile(path: string): Promise<ArchiveFile> {
  const { size } = await stat(path)
  return {
    size,
    // Node includes the end.
    read: (range) =>
      createReadStream(
        path,
        range === undefined ? {} : { start: range.start, end: Math.max(range.start, range.end - 1) },
      ),
  }
}
