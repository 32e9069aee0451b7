/** Accepted formats: those that every client displays. Each further decoder would be attack surface for untrusted files. */
const formats = {
  jpeg: { ending: 'jpg', begins: (head: string) => head.startsWith('\xff\xd8\xff') },
  png: { ending: 'png', begins: (head: string) => head.startsWith('\x89PNG\r\n\x1a\n') },
  gif: { ending: 'gif', begins: (head: string) => /^GIF8[79]a/.test(head) },
  webp: { ending: 'webp', begins: (head: string) => head.startsWith('RIFF') && head.startsWith('WEBP', 8) },
} as const

export type PictureFormat = keyof typeof formats

const names = Object.keys(formats) as readonly PictureFormat[] // the table has no other keys

/** Number of bytes that identify a format. */
export const FORMAT_HEAD_BYTES = 12

/** Detects the format from the first bytes; file names are not trusted. Undefined: the format is not accepted. */
export function detectPictureFormat(head: Buffer): PictureFormat | undefined {
  const text = head.toString('latin1')
  return names.find((name) => formats[name].begins(text))
}

export function fileExtensionForFormat(format: PictureFormat): string {
  return formats[format].ending
}
