import { domainToASCII } from 'node:url'

/** A link to a web page as browsers would open it. */
export interface WebLink {
  /** Lower case, ASCII, without port and trailing dot. */
  readonly host: string
  /** Path, query and fragment; empty or with a `/`, `?` or `#` in front. */
  readonly rest: string
}

const START = /https?:[/\\]+|(?<![\p{L}\p{N}.@-])www\./gu
const AUTHORITY_END = /[/?#\\,;!*&=+$]/g
const LINK_END = /[\s<>"'()[\]{}|`]/g
const USUAL_HOST = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)+$/
const ENCODED_ASCII = /%[2-7][0-9a-f]/g
const MAX_REST_CHARACTERS = 2_048
const MAX_HOST_CHARACTERS = 253
/** With a trailing dot, a colon and a port. */
const MAX_HOST_AND_PORT_CHARACTERS = MAX_HOST_CHARACTERS + 7
/** Each character can be written as `%61`. */
const MAX_ENCODED_CHARACTERS = 3 * MAX_HOST_AND_PORT_CHARACTERS

/** All links of a text in normal form. Its ends of links are searched once, also where a link contains others. */
export function readWebLinks(text: string): readonly WebLink[] {
  const links: WebLink[] = []
  const findAuthorityEnd = forwardSearch(AUTHORITY_END, text)
  const findLinkEnd = forwardSearch(LINK_END, text)
  const findPercent = forwardSearch(/%/g, text)
  const findHostStart = hostStartSearch(text)
  const decodeHost = hostDecoder(text)
  let lastStart = -1
  for (const { 0: start, index } of text.matchAll(START)) {
    const from = start === 'www.' ? index : index + start.length
    const linkEnd = findLinkEnd(from)
    const authorityEnd = Math.min(findAuthorityEnd(from), linkEnd)
    const percent = findPercent(from)
    const hostStart = findHostStart(from, authorityEnd)
    const isNew = hostStart !== lastStart && authorityEnd - hostStart <= MAX_ENCODED_CHARACTERS
    if (!isNew && percent >= hostStart) continue
    if (isNew) lastStart = hostStart
    // A written address without markup ends at a `%`. Browsers decode it in a host.
    const names = [
      ...(isNew || percent < hostStart ? [text.slice(from, Math.min(percent, authorityEnd))] : []),
      ...(isNew && percent < authorityEnd ? [decodeHost(hostStart, authorityEnd)] : []),
    ]
    for (const host of names.map(readHost)) {
      if (host === undefined) continue
      const end = Math.min(linkEnd, authorityEnd + MAX_REST_CHARACTERS)
      links.push({ host, rest: text.slice(authorityEnd, end).replaceAll('\\', '/') })
    }
  }
  return links
}

/** Finds where the host of an authority begins, after its last `@`. The arguments of successive calls must not decrease. */
function hostStartSearch(text: string): (from: number, authorityEnd: number) => number {
  const findUserEnd = forwardSearch(/@/g, text)
  let hostStart = 0
  return (from, authorityEnd) => {
    hostStart = Math.max(hostStart, from)
    while (findUserEnd(hostStart) < authorityEnd) hostStart = findUserEnd(hostStart) + 1
    return hostStart
  }
}

/**
 * Decodes hosts. Those with the same end are parts of each other: only what precedes the next one is decoded again, so that a text of many
 * nested links takes linear time. The arguments of successive calls must not decrease.
 */
function hostDecoder(text: string): (start: number, end: number) => string {
  let last = { start: 0, end: -1, decoded: '' }
  return (start, end) => {
    const decoded =
      end === last.end
        ? last.decoded.slice(decodeAscii(text.slice(last.start, start)).length)
        : decodeAscii(text.slice(start, end))
    last = { start, end, decoded }
    return decoded
  }
}

function decodeAscii(encoded: string): string {
  return encoded.replace(ENCODED_ASCII, (character) =>
    String.fromCharCode(Number.parseInt(character.slice(1), 16)).toLowerCase(),
  )
}

/** The host of an authority: without user, port, trailing dot and the `_` of Markdown, in ASCII. */
export function readHost(authority: string): string | undefined {
  const isUsual = authority.length <= MAX_HOST_CHARACTERS && USUAL_HOST.test(authority) && !authority.endsWith('_')
  if (isUsual) return authority
  const end = authority.slice(-MAX_HOST_AND_PORT_CHARACTERS)
  const user = end.lastIndexOf('@')
  if (user === -1 && end.length < authority.length) return undefined
  const written = withoutTrailing(withoutPort(end.slice(user + 1)), '._')
  const host = /^[a-z0-9._-]*$/.test(written) ? written : withoutTrailing(domainToASCII(written), '.')
  return host.includes('.') && host.length <= MAX_HOST_CHARACTERS ? host : undefined
}

/** Without the given characters at the end. A regular expression would read a long run once for each of its characters. */
export function withoutTrailing(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1
  return text.slice(0, end)
}

function withoutPort(authority: string): string {
  const name = withoutTrailing(authority, '0123456789')
  return name.endsWith(':') ? name.slice(0, -1) : authority
}

/** Finds the first match from an index on. The indexes of successive calls must not decrease. */
function forwardSearch(pattern: RegExp, text: string): (from: number) => number {
  let found = -1
  return (from) => {
    if (found < from) {
      pattern.lastIndex = from
      found = pattern.exec(text)?.index ?? text.length
    }
    return found
  }
}
