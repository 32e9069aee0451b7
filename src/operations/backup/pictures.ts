import { createHash } from 'node:crypto'
import { listPhotoFiles } from '../../domain/photos/photos.js'
import { inChunks } from '../../jobs/chunks.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { encryptFor } from './encryption.js'
import { createByteCounter } from './parts.js'
import type { Repository } from './repositories/repository.js'
import { splitLines } from './rows.js'

/** A line of the list of pictures, in order of the photos. */
export interface PictureEntry {
  readonly photoId: number
  readonly path: string
  readonly size: number
  readonly sha256: string
}

/** A local photo of the snapshot. */
export interface LocalPhoto {
  readonly id: number
  readonly name: string
}

export interface LocalPhotos extends Iterable<LocalPhoto> {
  readonly count: number
}

interface Options {
  readonly repository: Repository
  readonly recipients: readonly string[]
  readonly pictures: Pick<PictureStorage, 'read'>
  /** The list of the last backup for the same recipients. A picture never changes under its name, so that it is stored once. */
  readonly previous: AsyncIterable<PictureEntry>
  readonly onPicture: (picture: { readonly bytes: number; readonly isNew: boolean }) => void
  readonly onMissing: (name: string) => void
  /** Called before each photo with the number of photos that are done. */
  readonly onPhoto: (done: number) => void
  readonly signal: AbortSignal
}

const MAX_CONCURRENT_READS = 4

/**
 * Where a picture is stored. The name is hashed, because it is the only protection of a private picture on the pod. A backup for
 * other recipients has files of its own.
 */
export function picturePath(file: string, recipients: readonly string[]): string {
  const key = createHash('sha256')
    .update(`${recipients.join(',')}\n${file}`)
    .digest('hex')
  return `pictures/${key.slice(0, 2)}/${key}${recipients.length > 0 ? '.age' : ''}`
}

/** The lines of the list of a backup without pictures: their sizes in the store of the pod. */
export async function* referPictures(
  pictures: Pick<PictureStorage, 'list'>,
  { onPicture, signal }: { readonly onPicture: () => void; readonly signal: AbortSignal },
): AsyncGenerator<Buffer> {
  for (let after = ''; ; ) {
    signal.throwIfAborted()
    const pictureFiles = await pictures.list(after)
    const last = pictureFiles.at(-1)
    if (last === undefined) return
    for (const { name, bytes } of pictureFiles) {
      onPicture()
      const hash = createHash('sha256').update(name).digest('hex')
      yield Buffer.from(`0 referenced/${hash} ${bytes} -\n`)
    }
    after = last.name
  }
}

/** Stores the pictures that the repository does not have, and yields the lines of the list. */
export async function* backUpPictures(photos: Iterable<LocalPhoto>, options: Options): AsyncGenerator<Buffer> {
  const previouslyStored = previousPictures(options.previous)
  let done = 0
  for (const { id, name } of photos) {
    options.signal.throwIfAborted()
    options.onPhoto(done)
    const storedEntries = await previouslyStored(id)
    const entries = await inGroups(listPhotoFiles(name), (file) => backUpPicture(file, id, storedEntries, options))
    const existingEntries = entries.filter((entry) => entry !== undefined)
    if (entries[0] === undefined) options.onMissing(name)
    for (const { path, size, sha256 } of existingEntries) yield Buffer.from(`${id} ${path} ${size} ${sha256}\n`)
    done += 1
  }
}

/** Undefined: the pod has no such file. Not every photo has every size. */
async function backUpPicture(
  file: string,
  photoId: number,
  stored: readonly PictureEntry[],
  { repository, recipients, pictures, onPicture }: Options,
): Promise<PictureEntry | undefined> {
  const path = picturePath(file, recipients)
  const storedSize = await repository.size(path)
  const same = stored.find((entry) => entry.path === path)
  if (same !== undefined && storedSize === same.size) {
    onPicture({ bytes: same.size, isNew: false })
    return same
  }
  const content = await pictures.read(file)
  if (content === undefined) return undefined
  const encrypted = createByteCounter()
  const chunks: Uint8Array[] = []
  for await (const chunk of encrypted.count(encryptFor(recipients)(chunksOf(content)))) chunks.push(chunk)
  const { bytes: size, sha256 } = encrypted.result()
  if (storedSize === size) {
    // Of an interrupted run or an older backup, whose list has its hash: each encryption has another one.
    const storedHash = await hashStored(repository, path)
    if (recipients.length > 0 || storedHash === sha256) {
      onPicture({ bytes: size, isNew: false })
      return { photoId, path, size, sha256: storedHash }
    }
  }
  await repository.write(path, chunks)
  onPicture({ bytes: size, isNew: true })
  return { photoId, path, size, sha256 }
}

async function hashStored(repository: Repository, path: string): Promise<string> {
  const stored = createByteCounter()
  for await (const _chunk of stored.count(repository.read(path)));
  return stored.result().sha256
}

async function* chunksOf(content: Buffer): AsyncGenerator<Buffer> {
  yield content
}

async function inGroups<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const group of inChunks(items, MAX_CONCURRENT_READS)) results.push(...(await Promise.all(group.map(run))))
  return results
}

/** Reads a list of pictures. */
export async function* readPictureList(content: AsyncIterable<Uint8Array>): AsyncGenerator<PictureEntry> {
  for await (const line of splitLines(content)) {
    const [id = '', path = '', size = '', sha256 = ''] = line.split(' ')
    yield { photoId: Number(id), path, size: Number(size), sha256 }
  }
}

/** Finds the pictures of a photo in a list; to be called with ascending ids. */
export function previousPictures(list: AsyncIterable<PictureEntry>): (id: number) => Promise<readonly PictureEntry[]> {
  const entries = list[Symbol.asyncIterator]()
  let next: PictureEntry | undefined
  let hasBegun = false
  const read = async () => {
    const { value, done } = await entries.next()
    next = done ? undefined : value
  }
  return async (id) => {
    if (!hasBegun) await read()
    hasBegun = true
    while (next !== undefined && next.photoId < id) await read()
    const pictureEntries: PictureEntry[] = []
    while (next !== undefined && next.photoId === id) {
      pictureEntries.push(next)
      await read()
    }
    return pictureEntries
  }
}
