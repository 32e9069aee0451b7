import { detectPictureFormat } from '../../src/domain/photos/picture-formats.js'
import { Refusal } from '../../src/domain/refusals.js'
import { type MadePicture, makePicture } from './make-picture.js'

/** Creates all sizes of a picture of an archive, whose name says nothing about its format. */
export async function makeImportedPicture(bytes: Buffer): Promise<MadePicture> {
  const format = detectPictureFormat(bytes)
  if (format === undefined) throw new Refusal('image_invalid', 'The file is not a picture.')
  return makePicture(bytes, format)
}
