import { PHOTO_LIMITS } from '../../src/domain/photos/limits.js'
import { listPhotoFiles, type SizePrefix } from '../../src/domain/photos/photos.js'
import { detectPictureFormat } from '../../src/domain/photos/picture-formats.js'
import { Refusal } from '../../src/domain/refusals.js'
import type { Services } from '../../src/services/services.js'
import { makePicture } from './make-picture.js'

/**
 * Creates the sizes that a picture lacks, from its original, which stays as it is. Of an original that cannot be read, the sizes are
 * copies, so that it is not read again at each request.
 */
export async function makeMissingSizes(
  { pictures, log }: Pick<Services, 'pictures' | 'log'>,
  { name }: { readonly name: string },
): Promise<void> {
  const original = await pictures.find(name)
  if (original === undefined) return
  if (original.bytes > PHOTO_LIMITS.originalBytes) {
    log.info({ picture: name, bytes: original.bytes }, 'picture too large for its missing sizes')
    return
  }
  const missing: string[] = []
  for (const file of listPhotoFiles(name)) if ((await pictures.find(file)) === undefined) missing.push(file)
  const bytes = missing.length === 0 ? undefined : await pictures.read(name)
  if (bytes === undefined) return
  const sizes = await sizesOf(bytes)
  for (const file of missing) {
    const prefix = file.slice(0, -name.length) as SizePrefix // as listPhotoFiles makes names
    await pictures.write(file, sizes?.get(prefix) ?? bytes)
  }
  log.info({ picture: name, sizes: missing.length }, 'missing sizes of a picture made')
}

/** Undefined: the picture cannot be read. */
async function sizesOf(bytes: Buffer): Promise<ReadonlyMap<SizePrefix, Buffer> | undefined> {
  const format = detectPictureFormat(bytes)
  if (format === undefined) return undefined
  try {
    return (await makePicture(bytes, format)).files
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}
