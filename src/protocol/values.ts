/** Reads values from the text of an element and writes them in canonical form (FEDERATION.md, "Values"). */

export function isGuid(text: string): boolean {
  return /^[0-9A-Za-z_@.:-]{15,254}[0-9A-Za-z]$/.test(text)
}

export function readFlag(text: string): boolean | undefined {
  switch (text.toLowerCase()) {
    case 'true':
    case 't':
    case 'yes':
    case 'y':
    case '1':
      return true
    case 'false':
    case 'f':
    case 'no':
    case 'n':
    case '0':
      return false
    default:
      return undefined
  }
}

export function writeFlag(flag: boolean): string {
  return flag ? 'true' : 'false'
}

export function readInteger(text: string): number | undefined {
  if (!/^[0-9]+$/.test(text)) return undefined
  const value = Number(text)
  return Number.isSafeInteger(value) ? value : undefined
}

export function writeInteger(value: number): string {
  return value.toFixed(0)
}

const timestamp =
  /^(\d{4})-(\d{2})-(\d{2})[T ](\d{2}):(\d{2}):(\d{2})(?:[.,]\d+)? ?(?:Z|UTC|GMT|([+-])(\d{2}):?(\d{2}))?$/

/** The Gregorian calendar repeats after this period. */
const cycle = { years: 400, milliseconds: 146_097 * 24 * 3_600_000 }

/** A point in time in whole seconds; UTC if there is no offset. 31 February rolls over into March, as in diaspora*. */
export function readTimestamp(text: string): Date | undefined {
  const parts = timestamp.exec(text)
  if (parts === null) return undefined
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])]
  const [hour, minute, second] = [Number(parts[4]), Number(parts[5]), Number(parts[6])]
  const isInRange =
    isBetween(month, 1, 12) && isBetween(day, 1, 31) && isBetween(hour, 0, 23) && isBetween(minute, 0, 59)
  if (!isInRange || !isBetween(second, 0, 60)) return undefined
  const offset = parts[7] === undefined ? 0 : readOffset(parts[7], Number(parts[8]), Number(parts[9]))
  if (offset === undefined) return undefined

  // Date.UTC maps the years 0 to 99 to 1900 to 1999; adding one cycle avoids that.
  const next = Date.UTC(year + cycle.years, month - 1, day, hour, minute - offset, second)
  const date = new Date(next - cycle.milliseconds)
  return isBetween(date.getUTCFullYear(), 0, 9999) ? date : undefined
}

/** Minutes ahead of UTC. */
function readOffset(sign: string, hours: number, minutes: number): number | undefined {
  if (!isBetween(hours, 0, 23) || !isBetween(minutes, 0, 59)) return undefined
  return (sign === '-' ? -1 : 1) * (hours * 60 + minutes)
}

export function writeTimestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`
}

/** `YYYY-MM-DD` of a day that exists, or empty. The year 1004 means "year not given". */
export function isBirthday(text: string): boolean {
  if (text === '') return true
  const parts = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text)
  if (parts === null) return false
  const [year, month, day] = parts.slice(1).map(Number)
  const date = new Date(0)
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day))
  return isBetween(month, 1, 12) && date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === day
}

/** A name that other pods accept: short enough and without `;`, the separator of lists. */
export function isAcceptedName(text: string, maxCharacters: number): boolean {
  return isWithinLength(text, maxCharacters) && !text.includes(';')
}

interface UrlParts {
  readonly scheme: string | undefined
  readonly host: string | undefined
  readonly path: string
}

// RFC 3986, appendix B, restricted to the allowed characters. WHATWG's URL would add a path that is not in the text.
const uriCharacters = /^(?:[A-Za-z0-9\-._~:/?#[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+$/
const uri = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)/

/** The limit of a text: no real link is longer, and longer ones would be stored. */
const maxUrlCharacters = 65_535

/** Splits a URI of printable ASCII, absolute or relative. `undefined`: not a URI. */
function splitUrl(text: string): UrlParts | undefined {
  const parts = text.length <= maxUrlCharacters && uriCharacters.test(text) ? uri.exec(text) : null
  if (parts === null) return undefined
  const [, scheme, host, path] = parts
  return { scheme, host: host === '' ? undefined : host, path: path ?? '' }
}

export function isUrlWithHost(text: string): boolean {
  return splitUrl(text)?.host !== undefined
}

/** Whether the text is a URL or a bare path, which other pods send for their default pictures. */
export function isUrlWithPath(text: string): boolean {
  const parts = splitUrl(text)
  return parts !== undefined && parts.path !== ''
}

export function isUrlWithHostAndPath(text: string): boolean {
  return isUrlWithHost(text) && isUrlWithPath(text)
}

/** The length that the limits of the protocol refer to: code points, not UTF-16 units. */
export function codePoints(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0)
}

/** `codePoints(text) <= longest`, without counting when the number of UTF-16 units decides. */
export function isWithinLength(text: string, maxCharacters: number): boolean {
  if (text.length <= maxCharacters) return true
  return text.length <= 2 * maxCharacters && codePoints(text) <= maxCharacters
}

/** The first characters, not UTF-16 units: `slice` could cut a character in two. */
export function firstCharacters(text: string, count: number): string {
  return text.length <= count ? text : [...text].slice(0, count).join('')
}

function isBetween(value: number | undefined, lowest: number, highest: number): boolean {
  return value !== undefined && value >= lowest && value <= highest
}
