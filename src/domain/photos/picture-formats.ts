/** The formats that every client shows, and no others: each reader of a format is code that strangers feed. */
const formats = {
  jpeg: { ending: 'jpg', begins: (head: string) => head.startsWith('\xff\xd8\xff') },
  png: { ending: 'png', begins: (head: string) => head.startsWith('\x89PNG\r\n\x1a\n') },
  gif: { ending: 'gif', begins: (head: string) => /^GIF8[79]a/.test(head) },
  webp: { ending: 'webp', begins: (head: string) => head.startsWith('RIFF') && head.startsWith('WEBP', 8) },
} as const

export type PictureFormat = keyof typeof formats

const names = Object.keys(formats) as readonly PictureFormat[] // the table has no other keys

/** As many bytes as it takes to tell a format. */
export const FORMAT_HEAD_BYTES = 12

/** By the first bytes alone: what somebody calls a file says nothing. Undefined: it is no picture that is taken. */
export function detectPictureFormat(head: Buffer): PictureFormat | undefined {
  const text = head.toString('latin1')
  return names.find((name) => formats[name].begins(text))
}

export function fileExtensionOf(format: PictureFormat): string {
  return formats[format].ending
}
