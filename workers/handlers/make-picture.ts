import sharp, { type Metadata, type ResizeOptions, type Sharp } from 'sharp'
import { PHOTO_LIMITS } from '../../src/domain/photos/limits.js'
import { PHOTO_SIZE_PREFIXES, PROFILE_PICTURE_PREFIX, type SizePrefix } from '../../src/domain/photos/photos.js'
import type { PictureFormat } from '../../src/domain/photos/picture-formats.js'
import { Refusal } from '../../src/domain/refusals.js'

// One thread of the library for each picture, so that the concurrency of the queue bounds the load.
sharp.concurrency(1)
sharp.cache(false)
// Disables the readers of all other formats, even for files with a wrong type.
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
 * Creates all sizes of a picture from its pixels alone: upright, in sRGB, and without metadata, embedded thumbnails or appended data.
 * Animations stay animated, except in thumbnails. Refuses damaged files and those that need too much memory.
 */
export async function makePicture(bytes: Buffer, format: PictureFormat): Promise<MadePicture> {
  // Reads only the header, so that a picture that is too large is refused with its reason.
  const metadata = await sharp(bytes, { ...READING, limitInputPixels: false })
    .metadata()
    .catch(refuseUnreadable)
  if (metadata.format !== format) throw refusal('The file is not what it begins as.')
  const pixels = countPixels(metadata)
  return pixels <= PHOTO_LIMITS.maxPixelsForParallelProcessing
    ? makeSizes(bytes, format)
    : runInTurn(() => makeSizes(bytes, format))
}

const READING = {
  animated: true,
  // A truncated photo is refused at once.
  failOn: 'error',
  limitInputPixels: PHOTO_LIMITS.pixels,
} as const

/** Encoders with settings that are fast and read the picture once. */
const write: { readonly [Each in PictureFormat]: (picture: Sharp) => Sharp } = {
  jpeg: (picture) => picture.jpeg({ quality: 88, optimiseCoding: false }),
  png: (picture) => picture.png(),
  gif: (picture) => picture.gif({ effort: 1, dither: 0 }),
  webp: (picture) => picture.webp({ quality: 88, effort: 2 }),
}

/** Other pods build addresses of these sizes, so that they are the same on every pod. Pictures are never enlarged. */
const LARGE_WIDTH = 700
const thumbnails: readonly (readonly [SizePrefix, ResizeOptions])[] = [
  [PROFILE_PICTURE_PREFIX, { width: 300, height: 1_500, fit: 'inside', withoutEnlargement: true }],
  [PHOTO_SIZE_PREFIXES.medium, { width: 100, height: 100, fit: 'inside', withoutEnlargement: true }],
  [PHOTO_SIZE_PREFIXES.small, { width: 50, height: 50, fit: 'cover' }],
]

async function makeSizes(bytes: Buffer, format: PictureFormat): Promise<MadePicture> {
  const encode = (picture: Sharp) =>
    write[format](picture)
      .timeout({ seconds: PHOTO_LIMITS.sizeSeconds })
      .toBuffer({ resolveWithObject: true })
      .catch(refuseUnreadable)

  const { data: raw, info } = await encode(sharp(bytes, READING).autoOrient())
  const { width, pageHeight: height = info.height } = info
  const files = new Map<SizePrefix, Buffer>([[PHOTO_SIZE_PREFIXES.raw, raw]])
  const isSmall = width <= LARGE_WIDTH
  const large = isSmall ? raw : (await encode(sharp(bytes, READING).autoOrient().resize({ width: LARGE_WIDTH }))).data
  files.set(PHOTO_SIZE_PREFIXES.large, large)
  for (const [prefix, size] of thumbnails) {
    files.set(prefix, (await encode(sharp(large, { ...READING, animated: false }).resize(size))).data)
  }
  return { width, height, files }
}

/**
 * Pixels as they count against the limit, of all frames. Weighted by measured memory: a pixel counts double where the reader cannot
 * work line by line, and double again with 16 bits a channel.
 */
function countPixels({ format, width, height, pageHeight, pages = 1, isProgressive, depth }: Metadata): number {
  if (Math.max(width, pageHeight ?? height) > PHOTO_LIMITS.sidePixels) throw tooLarge()
  if (pages > PHOTO_LIMITS.frames) throw tooLarge()
  const times = (TIMES[format] ?? 1) * (isProgressive ? 2 : 1) * (depth === 'uchar' ? 1 : 2)
  const pixels = width * (pageHeight ?? height) * pages * times
  if (pixels > PHOTO_LIMITS.pixels) throw tooLarge()
  return pixels
}

/** WebP is decoded as a whole; a GIF takes long for each frame. */
const TIMES: Readonly<Record<string, number>> = { webp: 4, gif: 2 }

let lastInLine: Promise<unknown> = Promise.resolve()

function runInTurn<Result>(make: () => Promise<Result>): Promise<Result> {
  const turn = lastInLine.then(make)
  lastInLine = turn.catch(() => {})
  return turn
}

/** The library throws no other class of error; nothing here uses the disk. */
function refuseUnreadable(cause: unknown): never {
  throw new Refusal('image_invalid', 'The picture is damaged or uses an unsupported feature.', { cause })
}

function tooLarge(): Refusal {
  const millions = PHOTO_LIMITS.pixels / 1_000_000
  return refusal(`The picture has too many pixels, or too many frames: at most ${millions} million in all.`)
}

function refusal(message: string): Refusal {
  return new Refusal('image_invalid', message)
}
