const padding = ['', undefined, '==', '='] as const

/**
 * Decodes base64url text with or without padding; the standard alphabet and white space are accepted too.
 * `undefined` for any other character: `Buffer.from` would skip it.
 */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  if (encodeBase64url(bytes) === text) return bytes
  return decode(text, /[^A-Za-z0-9_+/-]/)
}

/** Decodes base64 text in the standard alphabet, with or without padding and white space. */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') === text) return bytes
  return decode(text, /[^A-Za-z0-9+/]/)
}

/** Base64url with padding: the form that all pods read. */
export function encodeBase64url(bytes: Buffer): string {
  const text = bytes.toString('base64url')
  return text + (padding[text.length % 4] ?? '')
}

function decode(text: string, foreign: RegExp): Buffer | undefined {
  const characters = text.replace(/[ \t\r\n]+/g, '')
  const digits = characters.replace(/={1,2}$/, '')
  const expectedPadding = padding[digits.length % 4]
  if (expectedPadding === undefined || foreign.test(digits)) return undefined
  if (digits.length !== characters.length && digits + expectedPadding !== characters) return undefined
  return Buffer.from(digits, 'base64')
}
