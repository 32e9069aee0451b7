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
const MAX_LINK_CHARACTERS = 2_048
const MAX_HOST_CHARACTERS = 253
/** With a trailing dot, a colon and a port. */
const MAX_HOST_AND_PORT_CHARACTERS = MAX_HOST_CHARACTERS + 7

/** All links of a text in normal form. Its ends of links are searched once, also where a link contains others. */
export function readWebLinks(text: string): readonly WebLink[] {
  const links: WebLink[] = []
  const findAuthorityEnd = forwardSearch(AUTHORITY_END, text)
  const findLinkEnd = forwardSearch(LINK_END, text)
  const findUserEnd = forwardSearch(/@/g, text)
  for (const { 0: start, index } of text.matchAll(START)) {
    const from = start === 'www.' ? index : index + start.length
    const end = Math.min(findLinkEnd(from), from + MAX_LINK_CHARACTERS)
    const authorityEnd = Math.min(findAuthorityEnd(from), end)
    if (authorityEnd - from > MAX_HOST_AND_PORT_CHARACTERS && findUserEnd(from) >= authorityEnd) continue
    const rest = text.slice(authorityEnd, end).replaceAll('\\', '/')
    for (const authority of readAuthorities(text.slice(from, authorityEnd))) {
      const host = readHost(authority)
      if (host !== undefined) links.push({ host, rest })
    }
  }
  return links
}

/** Browsers decode a `%` in a host; a written address without markup ends there. */
function readAuthorities(written: string): readonly string[] {
  const percent = written.indexOf('%')
  if (percent === -1) return [written]
  const decoded = written.replace(ENCODED_ASCII, (encoded) =>
    String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
  )
  return [decoded.toLowerCase(), written.slice(0, percent)]
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
