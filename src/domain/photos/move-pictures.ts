import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { inChunks } from '../../jobs/chunks.js'
import { withSessionLock } from '../../persistence/database/session-lock.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { Refusal } from '../refusals.js'
import { readFiles, sizePrefixOf } from './orphaned-files.js'

const MAX_CONCURRENT_COPIES = 8
const PHOTO_BATCH_SIZE = 500

interface MoveOptions {
  readonly from: PictureStorage
  readonly to: PictureStorage
  /** Counts only. */
  readonly dryRun: boolean
  /** Deletes each picture in the old store after its copy. */
  readonly shouldDeleteSource: boolean
  readonly signal: AbortSignal
  readonly report: (done: number) => void
}

export interface MovedPictures {
  readonly copied: number
  /** The new store has them already. */
  readonly present: number
  /** Deleted in the old store while they were copied. */
  readonly gone: number
}

/**
 * Copies all published pictures from one store to another. A picture that is there with the same SHA-256 stays, so that the move can
 * be repeated. One at a time: a second move would take a picture that the first has moved for a deleted one.
 */
export async function movePictures(db: Knex, options: MoveOptions): Promise<MovedPictures> {
  const refuse = () =>
    new Refusal('move_running', 'Another command is moving pictures of this pod: wait until it has ended.')
  return withSessionLock(db, 'move of pictures', { signal: options.signal, refuse }, (signal) =>
    copyPictures({ ...options, signal }),
  )
}

async function copyPictures({
  from,
  to,
  dryRun,
  shouldDeleteSource,
  signal,
  report,
}: MoveOptions): Promise<MovedPictures> {
  const counts = { copied: 0, present: 0, gone: 0 }
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const pictureFiles = await from.list(after)
    const last = pictureFiles.at(-1)
    if (last === undefined) return counts
    for (const group of inChunks(pictureFiles, MAX_CONCURRENT_COPIES)) {
      signal.throwIfAborted()
      await Promise.all(
        group.map(async ({ name, bytes }) => {
          const outcome = (await isPresent(name, bytes)) ? 'present' : await copy(name)
          counts[outcome] += 1
          if (shouldDeleteSource && !dryRun && outcome !== 'gone') await from.delete([name])
        }),
      )
      report(counts.copied + counts.present + counts.gone)
    }
    after = last.name
  }

  async function isPresent(name: string, bytes: number): Promise<boolean> {
    return (await to.find(name))?.bytes === bytes && (await hashOf(to, name)) === (await hashOf(from, name))
  }

  async function copy(name: string): Promise<'copied' | 'gone'> {
    if (dryRun) return 'copied'
    const content = await from.read(name)
    if (content === undefined) return 'gone'
    await to.write(name, content)
    if ((await from.find(name)) !== undefined) return 'copied'
    // The picture was deleted during the copy, so the copy is deleted too.
    await to.delete([name])
    return 'gone'
  }
}

/** Returns the hash that the store has noted, else that of the bytes. */
async function hashOf(store: PictureStorage, name: string): Promise<string | undefined> {
  const recordedHash = (await store.find(name))?.sha256
  if (recordedHash !== undefined) return recordedHash
  const content = await store.read(name)
  return content && createHash('sha256').update(content).digest('hex')
}

export interface PictureCheck {
  readonly photos: number
  /** Names of photos whose original is in no store. */
  readonly missing: readonly string[]
  /** Files without a photo. */
  readonly orphaned: readonly string[]
  /** Files without content. */
  readonly empty: readonly string[]
  /** The files of photos by the prefix of their size. */
  readonly sizes: Readonly<Record<string, FilesOfSize>>
}

interface FilesOfSize {
  readonly files: number
  readonly bytes: number
}

/** Compares the photos of this pod with the pictures of a store. */
export async function checkPictures(db: Knex, pictures: PictureStorage, signal: AbortSignal): Promise<PictureCheck> {
  const missing: string[] = []
  let photos = 0
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const rows: readonly { readonly id: number; readonly name: string }[] = await db('photos')
      .whereNull('remotePath')
      .where('id', '>', after)
      .orderBy('id')
      .limit(PHOTO_BATCH_SIZE)
      .select('id', 'name')
    for (const group of inChunks(rows, MAX_CONCURRENT_COPIES)) {
      const targetFiles = await Promise.all(group.map(({ name }) => pictures.find(name)))
      missing.push(...group.filter((_, index) => targetFiles[index] === undefined).map(({ name }) => name))
    }
    photos += rows.length
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.id
  }
  return { photos, missing, ...(await checkFiles(db, pictures, signal)) }
}

async function checkFiles(
  db: Knex,
  pictures: PictureStorage,
  signal: AbortSignal,
): Promise<Pick<PictureCheck, 'orphaned' | 'empty' | 'sizes'>> {
  const [orphaned, empty]: [string[], string[]] = [[], []]
  const sizes: Record<string, FilesOfSize> = {}
  for await (const { files, orphans } of readFiles(db, pictures, '', signal)) {
    orphaned.push(...orphans.map(({ name }) => name))
    const withoutPhoto = new Set(orphans)
    for (const file of files.filter((each) => !withoutPhoto.has(each))) {
      if (file.bytes === 0) empty.push(file.name)
      const prefix = sizePrefixOf(file.name)
      const { files: count, bytes } = sizes[prefix] ?? { files: 0, bytes: 0 }
      sizes[prefix] = { files: count + 1, bytes: bytes + file.bytes }
    }
  }
  return { orphaned, empty, sizes }
}
