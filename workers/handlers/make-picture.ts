import sharp, { type Metadata, type ResizeOptions, type Sharp } from 'sharp'
import { PHOTO_SIZE_PREFIXES, PROFILE_PICTURE_PREFIX, type SizePrefix } from '../../src/domain/photos/photos.js'
import type { PictureFormat } from '../../src/domain/photos/picture-formats.js'
import { Refusal } from '../../src/domain/refusals.js'
import { PHOTO_LIMITS } from '../../src/limits.js'

// The library works in threads of its own: one for each picture, so that what is in hand bounds what is taken of the machine.
sharp.concurrency(1)
sharp.cache(false)
// Nobody shall reach the readers of other formats, whatever a file claims to be.
sharp.block({ operation: ['VipsForeignLoad'] })
sharp.unblock({
  operation: [
    'VipsForeignLoadJpegBuffer',
    'VipsForeignLoadPngBuffer',
    'VipsForeignLoadNsgifBuffer',
    'VipsForeignLoadWebpBuffer',
  ],
})

export interface MadePicture {
  readonly width: number
  readonly height: number
  readonly files: ReadonlyMap<SizePrefix, Buffer>
}

/**
 * Makes all sizes of a picture from its pixels alone: upright, in the colours of the web, and without anything else that the
 * file carried, be it a place, a thumbnail or a script behind its end. What moves goes on moving, except in thumbnails. Refuses
 * what is damaged or would need too much of the machine.
 */
export async function makePicture(bytes: Buffer, format: PictureFormat): Promise<MadePicture> {
  // Only the beginning is read for this, so that whoever sends something enormous hears what is wrong with it.
  const facts = await sharp(bytes, { ...READING, limitInputPixels: false })
    .metadata()
    .catch(unreadable)
  if (facts.format !== format) throw refusal('The file is not what it begins as.')
  const pixels = countPixels(facts)
  return pixels <= PHOTO_LIMITS.pixelsSideBySide
    ? makeSizes(bytes, format)
    : oneAfterAnother(() => makeSizes(bytes, format))
}

const READING = {
  animated: true,
  // Of a photo that was cut off, somebody would find out too late.
  failOn: 'error',
  limitInputPixels: PHOTO_LIMITS.pixels,
} as const

/** The encoders where they are quick and need no second look at the whole picture. */
const write: { readonly [Each in PictureFormat]: (picture: Sharp) => Sharp } = {
  jpeg: (picture) => picture.jpeg({ quality: 88, optimiseCoding: false }),
  png: (picture) => picture.png(),
  gif: (picture) => picture.gif({ effort: 1, dither: 0 }),
  webp: (picture) => picture.webp({ quality: 88, effort: 2 }),
}

/** What others build addresses of has these sizes on every pod; nothing is made larger than it is. */
const LARGE_WIDTH = 700
const thumbnails: readonly (readonly [SizePrefix, ResizeOptions])[] = [
  [PROFILE_PICTURE_PREFIX, { width: 300, height: 1_500, fit: 'inside', withoutEnlargement: true }],
  [PHOTO_SIZE_PREFIXES.medium, { width: 100, height: 100, fit: 'inside', withoutEnlargement: true }],
  [PHOTO_SIZE_PREFIXES.small, { width: 50, height: 50, fit: 'cover' }],
]

async function makeSizes(bytes: Buffer, format: PictureFormat): Promise<MadePicture> {
  const written = (picture: Sharp) =>
    write[format](picture)
      .timeout({ seconds: PHOTO_LIMITS.sizeSeconds })
      .toBuffer({ resolveWithObject: true })
      .catch(unreadable)

  const { data: raw, info } = await written(sharp(bytes, READING).autoOrient())
  const { width, pageHeight: height = info.height } = info
  const files = new Map<SizePrefix, Buffer>([[PHOTO_SIZE_PREFIXES.raw, raw]])
  const isSmall = width <= LARGE_WIDTH
  const large = isSmall ? raw : (await written(sharp(bytes, READING).autoOrient().resize({ width: LARGE_WIDTH }))).data
  files.set(PHOTO_SIZE_PREFIXES.large, large)
  for (const [prefix, size] of thumbnails) {
    files.set(prefix, (await written(sharp(large, { ...READING, animated: false }).resize(size))).data)
  }
  return { width, height, files }
}

/**
 * As they count against the limit, all frames together. The numbers stand for the memory that a worker was seen to need: where
 * the reader cannot go line by line, a pixel counts double, and with 16 bits a channel it does again.
 */
function countPixels({ format, width, height, pageHeight, pages = 1, isProgressive, depth }: Metadata): number {
  if (Math.max(width, pageHeight ?? height) > PHOTO_LIMITS.sidePixels) throw tooLarge()
  if (pages > PHOTO_LIMITS.frames) throw tooLarge()
  const times = (TIMES[format] ?? 1) * (isProgressive ? 2 : 1) * (depth === 'uchar' ? 1 : 2)
  const pixels = width * (pageHeight ?? height) * pages * times
  if (pixels > PHOTO_LIMITS.pixels) throw tooLarge()
  return pixels
}

/** The reader and the writer of WebP have all of it in hand; a GIF takes long for each frame. */
const TIMES: Readonly<Record<string, number>> = { webp: 4, gif: 2 }

let lastInLine: Promise<unknown> = Promise.resolve()

function oneAfterAnother<Result>(make: () => Promise<Result>): Promise<Result> {
  const turn = lastInLine.then(make)
  lastInLine = turn.catch(() => {})
  return turn
}

/** There is no other class of error; what the disk has to do with is not done here. */
function unreadable(cause: unknown): never {
  throw new Refusal('image_invalid', 'The picture is damaged, or has something that nobody can read.', { cause })
}

function tooLarge(): Refusal {
  const millions = PHOTO_LIMITS.pixels / 1_000_000
  return refusal(`The picture has too many pixels, or too many frames: at most ${millions} million in all.`)
}

function refusal(message: string): Refusal {
  return new Refusal('image_invalid', message)
}
