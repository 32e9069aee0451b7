import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import type { SizePrefix } from '../../src/domain/photos/photos.js'
import { detectPictureFormat } from '../../src/domain/photos/picture-formats.js'
import { Refusal } from '../../src/domain/refusals.js'
import { makePicture } from '../../workers/handlers/make-picture.js'
import {
  fromPhone,
  gifOfFrames,
  jpegOfSize,
  moving,
  noise,
  plain,
  pngOfSize,
  twoColours,
  webpOfSize,
} from '../support/files/pictures.js'

/** Processes a file as a worker does, which has only the bytes. */
async function processPicture(bytes: Buffer) {
  const format = detectPictureFormat(bytes)
  if (format === undefined) throw new Refusal('image_invalid', 'It begins like no picture.')
  const { width, height, files } = await makePicture(bytes, format)
  const file = (prefix: SizePrefix): Buffer => {
    const found = files.get(prefix)
    if (found === undefined) throw new Error(`There is no ${prefix}.`)
    return found
  }
  return { format, width, height, file, raw: file('') }
}

async function sizeOf(bytes: Buffer) {
  const { width, height, pageHeight = height, pages = 1, format } = await sharp(bytes, { animated: true }).metadata()
  return { width, height: pageHeight, pages, format }
}

async function pixelAt(bytes: Buffer, left: number, top: number): Promise<number[]> {
  const area = { left, top, width: 1, height: 1 }
  return [...(await sharp(bytes).extract(area).removeAlpha().raw().toBuffer())]
}

const isRed = ([r = 0, g = 255, b = 255]: readonly number[]) => r > 200 && g < 60 && b < 60
const isBlue = ([r = 255, g = 255, b = 0]: readonly number[]) => r < 60 && g < 60 && b > 200

const expectRefusal = (bytes: Buffer) => expect(processPicture(bytes).then(() => 'made')).rejects.toThrow(Refusal)
const tooMuch = (bytes: Buffer) => expect(processPicture(bytes).then(() => 'made')).rejects.toThrow('too many pixels')

describe('the sizes of a picture', () => {
  it.each(['jpeg', 'png', 'gif', 'webp'] as const)(
    'are those that other pods build addresses of, as %s',
    async (format) => {
      const { file, width, height } = await processPicture(
        await noise(1_000, 640).toFormat(format, { effort: 1 }).toBuffer(),
      )

      expect([width, height]).toEqual([1_000, 640])
      expect(await sizeOf(file(''))).toEqual({ width: 1_000, height: 640, pages: 1, format })
      expect(await sizeOf(file('scaled_full_'))).toEqual({ width: 700, height: 448, pages: 1, format })
      expect(await sizeOf(file('thumb_large_'))).toEqual({ width: 300, height: 192, pages: 1, format })
      expect(await sizeOf(file('thumb_medium_'))).toEqual({ width: 100, height: 64, pages: 1, format })
      expect(await sizeOf(file('thumb_small_'))).toEqual({ width: 50, height: 50, pages: 1, format })
    },
  )

  it('are never larger than the picture, except for the smallest, which is always a square', async () => {
    const { file } = await processPicture(await twoColours(20, 10).png().toBuffer())

    for (const prefix of ['', 'scaled_full_', 'thumb_large_', 'thumb_medium_'] as const) {
      expect(await sizeOf(file(prefix))).toMatchObject({ width: 20, height: 10 })
    }
    expect(await sizeOf(file('thumb_small_'))).toMatchObject({ width: 50, height: 50 })
  })

  it.each([
    [1, 60_000, 1, 60_000],
    [60_000, 1, 700, 1],
  ])('can be made of one that is %i wide and %i high', async (width, height, largeWidth, largeHeight) => {
    const { file } = await processPicture(await plain(width, height).png().toBuffer())

    expect(await sizeOf(file('scaled_full_'))).toMatchObject({ width: largeWidth, height: largeHeight })
    expect(await sizeOf(file('thumb_small_'))).toMatchObject({ width: 50, height: 50 })
  })
})

describe('a processed picture', () => {
  it('contains only pixels: no location, no names, no colour profile', async () => {
    const bytes = await fromPhone()
    expect(bytes.includes('Secret Artist')).toBe(true)
    const { exif: before } = await sharp(bytes).metadata()
    expect(before?.length).toBeGreaterThan(100)

    const { file } = await processPicture(bytes)

    for (const prefix of ['', 'scaled_full_', 'thumb_large_', 'thumb_medium_', 'thumb_small_'] as const) {
      expect(file(prefix).includes('Secret Artist')).toBe(false)
      const { exif, xmp, iptc, icc, orientation, comments } = await sharp(file(prefix)).metadata()
      expect([exif, xmp, iptc, icc, orientation, comments]).toEqual(Array(6).fill(undefined))
    }
  })

  it('is rotated according to its orientation tag', async () => {
    const { raw, file, width, height } = await processPicture(await fromPhone())

    expect([width, height]).toEqual([40, 80])
    for (const picture of [raw, file('scaled_full_')]) {
      expect(await sizeOf(picture)).toMatchObject({ width: 40, height: 80 })
      expect(await pixelAt(picture, 20, 10)).toSatisfy(isRed)
      expect(await pixelAt(picture, 20, 70)).toSatisfy(isBlue)
    }
  })

  it('is converted from any colour space to sRGB', async () => {
    const wide = await twoColours().withIccProfile('p3').jpeg().toBuffer()
    const print = await twoColours().toColourspace('cmyk').jpeg().toBuffer()
    const deep = await twoColours().toColourspace('rgb16').png().toBuffer()
    expect(await sharp(wide).metadata()).toMatchObject({ hasProfile: true })
    expect(await sharp(print).metadata()).toMatchObject({ space: 'cmyk' })
    expect(await sharp(deep).metadata()).toMatchObject({ depth: 'ushort' })

    for (const bytes of [wide, print, deep]) {
      const { raw } = await processPicture(bytes)
      expect(await sharp(raw).metadata()).toMatchObject({ space: 'srgb', depth: 'uchar', hasProfile: false })
      expect(await pixelAt(raw, 5, 5)).toSatisfy(isRed)
    }
  })

  it('keeps its transparency', async () => {
    const clear = { width: 10, height: 10, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } as const
    const { raw } = await processPicture(await sharp({ create: clear }).png().toBuffer())

    expect(await sharp(raw).metadata()).toMatchObject({ hasAlpha: true })
  })

  it.each([
    ['a page', Buffer.from('<html><script>alert(1)</script>')],
    ['an archive', Buffer.from('PK\x03\x04 an archive that begins behind the picture')],
  ])('ends where the picture ends, and leaves out %s behind it', async (_what, tail) => {
    for (const format of ['jpeg', 'png', 'gif', 'webp'] as const) {
      const { raw, file } = await processPicture(Buffer.concat([await twoColours().toFormat(format).toBuffer(), tail]))
      for (const picture of [raw, file('scaled_full_')]) expect(picture.includes(tail)).toBe(false)
    }
  })

  it('contains no GIF comment, which could hold a script', async () => {
    const plain = await twoColours().gif().toBuffer()
    const script = Buffer.from('=1;alert(document.domain);/*')
    const comment = Buffer.concat([Buffer.from([0x21, 0xfe, script.length]), script, Buffer.from([0])])
    const end = plain.length - 1
    const { raw } = await processPicture(Buffer.concat([plain.subarray(0, end), comment, plain.subarray(end)]))

    expect(raw.includes('alert')).toBe(false)
  })

  it.each(['gif', 'webp'] as const)('keeps the animation of a %s, except in thumbnails', async (format) => {
    const { file, width, height } = await processPicture(await moving(format, { frames: 3, width: 800, height: 400 }))

    expect([width, height]).toEqual([800, 400])
    expect(await sizeOf(file(''))).toMatchObject({ width: 800, height: 400, pages: 3 })
    expect(await sizeOf(file('scaled_full_'))).toMatchObject({ width: 700, height: 350, pages: 3 })
    for (const prefix of ['thumb_large_', 'thumb_medium_', 'thumb_small_'] as const) {
      expect(await sizeOf(file(prefix))).toMatchObject({ pages: 1, format })
    }
  })
})

describe('an invalid or too large picture', () => {
  it.each([
    ['nothing', Buffer.alloc(0)],
    ['a text', Buffer.from('I am a picture, believe me.')],
    ['a drawing', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
    [
      'a drawing behind the beginning of a PNG',
      Buffer.from('\x89PNG\r\n\x1a\n<svg xmlns="http://www.w3.org/2000/svg"/>', 'latin1'),
    ],
    ['a document', Buffer.from('%PDF-1.7')],
    ['the beginning of a JPEG', Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
    ['the beginning of a GIF', Buffer.from('GIF89a')],
    ['a frame without a picture', Buffer.from('RIFF\x04\x00\x00\x00WEBP')],
    ['a GIF without frames', gifOfFrames(0)],
  ])('is refused: %s', async (_what, bytes) => {
    await expectRefusal(bytes)
  })

  it('is refused as TIFF or HEIF, whose decoders are a frequent source of vulnerabilities', async () => {
    await expectRefusal(await twoColours().tiff().toBuffer())
    await expectRefusal(await twoColours().heif({ compression: 'av1' }).toBuffer())
  })

  it('never reaches decoders of other formats, which are disabled in this process', async () => {
    const drawing = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    for (const bytes of [drawing, await twoColours().tiff().toBuffer()]) {
      await expect(sharp(bytes).metadata()).rejects.toThrow('unsupported image format')
    }
  })

  it.each(['jpeg', 'png', 'gif', 'webp'] as const)('is refused when a %s is truncated', async (format) => {
    const bytes = await noise(300, 200).toFormat(format, { effort: 1 }).toBuffer()

    await expect(processPicture(bytes)).resolves.toMatchObject({ width: 300 })
    for (const part of [0.1, 0.5, 0.95]) await expectRefusal(bytes.subarray(0, Math.floor(bytes.length * part)))
  })

  it.each([
    [60_000, 60_000],
    [10_001, 10_000],
  ])('is refused when it claims to be %i × %i', async (width, height) => {
    await tooMuch(pngOfSize(width, height))
  })

  it.each([
    [2_000_000_000, 2_000_000_000],
    [0, 10],
  ])('is refused when it claims to be %i × %i, which nothing can be', async (width, height) => {
    await expectRefusal(pngOfSize(width, height))
  })

  it('is refused when one side is longer than the limit', async () => {
    await tooMuch(await plain(65_536, 1).png().toBuffer())
  })

  it('counts all frames of an animation', async () => {
    await tooMuch(gifOfFrames(1_001))
    await expect(processPicture(gifOfFrames(1_000))).resolves.toMatchObject({ width: 1, height: 1 })
    await tooMuch(gifOfFrames(200_000))
    // A million pixels each, which count double.
    await tooMuch(gifOfFrames(51, 1_000))
  })

  it('counts more pixels for formats that must be in memory completely', async () => {
    const side = 7_200 // 52 million pixels
    await tooMuch(await jpegOfSize(side, side))
    await tooMuch(pngOfSize(side, side, { interlaced: true }))
    await tooMuch(pngOfSize(side, side, { depth: 16 }))
    await tooMuch(await webpOfSize(5_001, 5_000))
    await expect(processPicture(await plain(side, side).jpeg().toBuffer())).resolves.toMatchObject({ width: side })
  })

  it('refuses a JPEG with many repeated scans before decoding takes long', async () => {
    const scans = await scansOf(await twoColours(4_000, 3_000).jpeg({ progressive: true }).toBuffer())
    await expectRefusal(Buffer.concat([scans.before, ...Array(5_000).fill(scans.last), Buffer.from([0xff, 0xd9])]))
  })
})

/** Returns a progressive JPEG without its end, and its last scan. */
async function scansOf(bytes: Buffer): Promise<{ readonly before: Buffer; readonly last: Buffer }> {
  const begins = bytes.lastIndexOf(Buffer.from([0xff, 0xda]))
  return { before: bytes.subarray(0, -2), last: bytes.subarray(begins, -2) }
}
