import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** RFC 6238 with SHA-1, six digits and steps of 30 seconds, which every authenticator app supports. */
const STEP_SECONDS = 30
const DIGITS = 6
const SECRET_BYTES = 20
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export function makeTotpSecret(): string {
  return writeBase32(randomBytes(SECRET_BYTES))
}

/** The step of the clock that the code belongs to: the current one, the one before or after. Undefined: the code is wrong. */
export function findTotpStep(secret: string, code: string, now: Date): number | undefined {
  if (!/^[0-9]{6}$/.test(code)) return undefined
  const key = readBase32(secret)
  const current = Math.floor(now.getTime() / 1_000 / STEP_SECONDS)
  return [current, current - 1, current + 1].find((step) => isSame(totpCode(key, step), code))
}

/** The code of a step (RFC 4226, 5.3). */
export function totpCode(key: Buffer, step: number, digits = DIGITS): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', key).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 0xf
  return String((mac.readUInt32BE(offset) & 0x7fffffff) % 10 ** digits).padStart(digits, '0')
}

/** The URL that an authenticator app reads from a QR code. */
export function totpUrl(
  secret: string,
  { issuer, label }: { readonly issuer: string; readonly label: string },
): string {
  const parameters = { secret, issuer, algorithm: 'SHA1', digits: String(DIGITS), period: String(STEP_SECONDS) }
  // Some apps show a `+` of form encoding.
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
  return `otpauth://totp/${encodeURIComponent(`${issuer}:${label}`)}?${query.join('&')}`
}

/** RFC 4648, 6, without padding. */
export function writeBase32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{1,5}/g) ?? []).map((group) => ALPHABET[Number.parseInt(group.padEnd(5, '0'), 2)]).join('')
}

export function readBase32(text: string): Buffer {
  const bits = [...text].map((character) => ALPHABET.indexOf(character).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

function isSame(code: string, givenCode: string): boolean {
  const [one, other] = [Buffer.from(code), Buffer.from(givenCode)]
  return one.length === other.length && timingSafeEqual(one, other)
}
