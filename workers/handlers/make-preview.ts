import sharp from 'sharp'
import { photoBaseUrl } from '../../src/domain/photos/photos.js'
import { detectPictureFormat } from '../../src/domain/photos/picture-formats.js'
import { Refusal } from '../../src/domain/refusals.js'
import {
  findPhotoSource,
  type PictureVariant,
  saveCasePicture,
} from '../../src/persistence/moderation/case-pictures.js'
import type { Services } from '../../src/services/services.js'
import { makePicture } from './make-picture.js'

const MAX_BYTES = 10 * 1_024 * 1_024
const REDIRECTS = 3
/** Width in pixels: so coarse that only colours are left. */
const BLURRED_WIDTH = 16
const WIDTH = 700

/** Creates a blurred and a clear copy of a reported picture. If the picture cannot be fetched or read, a moderator can request it again. */
export async function makePreview(
  services: Pick<Services, 'config' | 'db' | 'remotePods' | 'pictures' | 'log'>,
  { photoGuid }: { readonly photoGuid: string },
): Promise<void> {
  let pictures: Readonly<Record<PictureVariant, Buffer>> | undefined
  try {
    pictures = await copiesOf(await readPhoto(services, photoGuid))
  } catch (err) {
    services.log.info({ err, photo: photoGuid }, 'reported picture not shown')
  }
  await saveCasePicture(services.db, photoGuid, pictures)
}

/** A remote picture is fetched like every other document: from public addresses only, with bounds. */
async function readPhoto(
  { db, config, pictures, remotePods }: Pick<Services, 'config' | 'db' | 'remotePods' | 'pictures'>,
  photoGuid: string,
): Promise<Buffer> {
  const source = await findPhotoSource(db, photoGuid)
  const bytes =
    source?.remotePath === null
      ? await pictures.read(source.name)
      : source &&
        (
          await remotePods.get(`${photoBaseUrl(source, config.url)}${source.name}`, {
            accept: 'image/*',
            maxBytes: MAX_BYTES,
            redirects: REDIRECTS,
          })
        ).body
  if (bytes === undefined || bytes.length === 0) throw new Refusal('image_invalid', 'The picture is not there.')
  return bytes
}

async function copiesOf(bytes: Buffer): Promise<Readonly<Record<PictureVariant, Buffer>>> {
  const format = detectPictureFormat(bytes)
  if (format === undefined) throw new Refusal('image_invalid', 'The file is not a picture.')
  const { files } = await makePicture(bytes, format)
  const large = sharp(files.get('scaled_full_'), { animated: false }).resize({ width: WIDTH, withoutEnlargement: true })
  const clear = await large.webp({ quality: 80, effort: 2 }).toBuffer()
  const coarse = await sharp(clear).resize({ width: BLURRED_WIDTH }).png().toBuffer()
  const blurredPicture = await sharp(coarse).resize({ width: WIDTH, kernel: 'cubic' }).webp({ quality: 60 }).toBuffer()
  return { blurred: blurredPicture, clear }
}
