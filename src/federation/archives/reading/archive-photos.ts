import { Refusal } from '../../../domain/refusals.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ArchiveFile } from './archive-file.js'
import { readMembers } from './archive-owner.js'
import { type SpooledArchive, spooledBatches } from './spool-archive.js'
import { openZip, type ZipEntry } from './zip-file.js'

const PHOTO_NAME = /^[A-Za-z0-9._-]{1,255}$/

/** The names of the photos of an archive: those of its posts, those without a post, and the picture of the profile. */
export async function readPhotoNames(
  { folder }: Pick<SpooledArchive, 'folder'>,
  profile: Readonly<Record<string, unknown>>,
): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  for await (const { items } of spooledBatches(folder, 'posts')) {
    for (const { value } of items) {
      const photos = readMembers(readMembers(value)?.['entity_data'])?.['photos']
      if (Array.isArray(photos)) for (const photo of photos) addPhotoName(names, photo)
    }
  }
  for await (const { items } of spooledBatches(folder, 'photos')) {
    for (const { value } of items) addPhotoName(names, value)
  }
  const picture = profilePictureName(profile)
  if (picture !== undefined) names.add(picture)
  return names
}

/** Adds the name of a photo entity, if this pod accepts it. */
export function addPhotoName(names: Set<string>, photo: unknown): void {
  const name = readMembers(readMembers(photo)?.['entity_data'])?.['remote_photo_name']
  if (typeof name === 'string' && PHOTO_NAME.test(name)) names.add(name)
}

/** The name of the photo that the profile shows. A relative URL is the default picture of the old pod, which is none. */
export function profilePictureName(profile: Readonly<Record<string, unknown>>): string | undefined {
  const url = profile['image_url']
  if (typeof url !== 'string' || !/^https?:\/\//i.test(url)) return undefined
  const name = url
    .slice(url.lastIndexOf('/') + 1)
    .replace(/^(thumb_large_|thumb_medium_|thumb_small_|scaled_full_)/, '')
  return PHOTO_NAME.test(name) ? name : undefined
}

/** Throws an `ArchiveError` for a zip that is larger than the setting allows. */
export function requireZipSize({ size }: ArchiveFile, maxBytes: number): void {
  if (size > maxBytes) throw new ArchiveError('too_large', `The zip of photos is larger than ${maxBytes} bytes.`)
}

export interface PhotosInZip {
  /** The first entry of each name of the archive. */
  readonly found: number
  /** Entries without a photo of that name in the archive, or that are not plain files. */
  readonly notNamed: number
}

/** Reads the list of a zip; `use` gets the entries of the photos of the archive, the first of each name. */
export async function readPhotosZip(
  file: ArchiveFile,
  names: ReadonlySet<string>,
  use: (entry: ZipEntry) => Promise<void> = async () => undefined,
): Promise<PhotosInZip> {
  const zip = await openZip(file)
  const foundNames = new Set<string>()
  let notNamed = 0
  try {
    for await (const entry of zip.entries(IMPORT_LIMITS.photoEntries)) {
      if (!entry.isPlainFile || !names.has(entry.name) || foundNames.has(entry.name)) {
        if (!foundNames.has(entry.name)) notNamed += 1
        continue
      }
      foundNames.add(entry.name)
      await use(entry)
    }
  } finally {
    zip.close()
  }
  return { found: foundNames.size, notNamed }
}

/** Reads an entry whose size the list of the zip states. Throws a `Refusal` for one that is damaged or larger than that. */
export async function readPhotoOfZip({ bytes, open }: Pick<ZipEntry, 'bytes' | 'open'>): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of (await open()) as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > bytes) break
      chunks.push(chunk)
    }
  } catch (cause) {
    throw new Refusal('image_invalid', 'The entry of the zip is damaged.', { cause })
  }
  if (length > bytes) throw new Refusal('image_invalid', 'The entry of the zip is larger than its stated size.')
  return Buffer.concat(chunks)
}
