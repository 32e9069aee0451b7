import { crc32, deflateSync } from 'node:zlib'
import sharp, { type Sharp } from 'sharp'

/** A picture that is red on the left and blue on the right. */
export function twoColours(width = 40, height = 20): Sharp {
  const half = { width: width / 2, height, channels: 3, background: '#0000ff' } as const
  return sharp({ create: { width, height, channels: 3, background: '#ff0000' } }).composite([
    { input: { create: half }, left: width / 2, top: 0 },
  ])
}

/** A picture of one colour. */
export function plain(width: number, height: number): Sharp {
  return sharp({ create: { width, height, channels: 3, background: '#336699' } })
}

/** A picture that cannot be compressed, so that its file is long enough to be truncated. */
export function noise(width: number, height: number): Sharp {
  const create = { width, height, channels: 3, background: '#808080' } as const
  return sharp({ create: { ...create, noise: { type: 'gaussian', mean: 128, sigma: 60 } } })
}

/** A JPEG of a phone: rotated by EXIF, with position and author in its metadata. */
export function fromPhone(): Promise<Buffer> {
  return twoColours(80, 40)
    .withExif({
      IFD0: { Artist: 'Secret Artist' },
      IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 0/1', GPSLongitudeRef: 'W', GPSLongitude: '0/1 7/1 0/1' },
    })
    .withMetadata({ orientation: 6 })
    .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/">Secret Artist</x:xmpmeta>')
    .jpeg()
    .toBuffer()
}

/** A small PNG file whose header claims these dimensions. */
export function pngOfSize(
  width: number,
  height: number,
  { depth = 8, interlaced = false }: { readonly depth?: 8 | 16; readonly interlaced?: boolean } = {},
): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = depth
  header[9] = 2 // true colour
  header[12] = interlaced ? 1 : 0
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(1_000))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

/** A small progressive JPEG whose header claims these dimensions. */
export async function jpegOfSize(width: number, height: number): Promise<Buffer> {
  const bytes = await plain(16, 16).jpeg({ progressive: true }).toBuffer()
  const frame = bytes.indexOf(Buffer.from([0xff, 0xc2]))
  bytes.writeUInt16BE(height, frame + 5)
  bytes.writeUInt16BE(width, frame + 7)
  return bytes
}

/** A small lossless WebP whose header claims these dimensions, at most 16 383 pixels each. */
export async function webpOfSize(width: number, height: number): Promise<Buffer> {
  const bytes = await plain(16, 16).webp({ lossless: true }).toBuffer()
  const sides = bytes.indexOf('VP8L') + 9
  const others = bytes.readUInt32LE(sides) & 0xf0000000
  bytes.writeUInt32LE((others | ((height - 1) << 14) | (width - 1)) >>> 0, sides)
  return bytes
}

/** A GIF whose header claims these dimensions for each frame; each frame is one pixel. */
export function gifOfFrames(frames: number, side = 1): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt16LE(side, 0)
  size.writeUInt16LE(side, 2)
  const screen = Buffer.concat([size, Buffer.from([0x80, 0, 0])])
  const palette = Buffer.from([0, 0, 0, 255, 255, 255])
  const control = Buffer.from([0x21, 0xf9, 4, 0, 2, 0, 0, 0])
  const place = Buffer.concat([Buffer.from([0x2c, 0, 0, 0, 0]), size, Buffer.from([0])])
  const black = Buffer.from([2, 2, 0x44, 1, 0])
  const white = Buffer.from([2, 2, 0x4c, 1, 0])
  const frame = (pixel: Buffer) => Buffer.concat([control, place, pixel])
  const all = Array.from({ length: frames }, (_, index) => frame(index % 2 === 0 ? black : white))
  return Buffer.concat([Buffer.from('GIF89a'), screen, palette, ...all, Buffer.from([0x3b])])
}

/** An animated picture. */
export async function moving(format: 'gif' | 'webp', { frames = 3, width = 20, height = 10 } = {}): Promise<Buffer> {
  const shades = Array.from({ length: frames }, (_, index) => {
    // Each frame differs much from the previous one, because the encoder drops similar frames.
    const background = { r: (index % 2) * 255, g: (index * 5) % 256, b: 0 }
    return sharp({ create: { width, height, channels: 3, background } })
      .png()
      .toBuffer()
  })
  return sharp(await Promise.all(shades), { join: { animated: true } })
    .toFormat(format, { effort: 1 })
    .toBuffer()
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
