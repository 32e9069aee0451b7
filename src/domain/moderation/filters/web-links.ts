import { domainToASCII } from 'node:url'

/** A link to a web page as browsers would open it. */
export interface WebLink {
  /** Lower case, ASCII, without port and trailing dot. */
  readonly host: string
  /** Path, query and fragment; empty or with a `/`, `?` or `#` in front. */
  readonly rest: string
}

const START = /https?:[/\\]+|(?<![\p{L}\p{N}.@-])www\./gu
const AUTHORITY_END = /[/?#\\,;!*&=+$%]/g
const LINK_END = /[\s<>"'()[\]{}|`]/g
const MAX_LINK_CHARACTERS = 2_048

/** All links of a text in normal form. Each character is read a bounded number of times. */
export function readWebLinks(text: string): readonly WebLink[] {
  const links: WebLink[] = []
  for (const { 0: start, index } of text.matchAll(START)) {
    const from = start === 'www.' ? index : index + start.length
    const candidate = text.slice(from, from + MAX_LINK_CHARACTERS)
    const link = candidate.slice(0, indexOf(LINK_END, candidate))
    const end = indexOf(AUTHORITY_END, link)
    const host = readHost(link.slice(0, end))
    if (host !== undefined) links.push({ host, rest: link.slice(end).replaceAll('\\', '/') })
  }
  return links
}

/** The host of an authority: without user, port and trailing dot, in ASCII. */
export function readHost(authority: string): string | undefined {
  const name = authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d*$/, '')
  const ascii = /^[a-z0-9._-]*$/.test(name) ? name : domainToASCII(name)
  const host = ascii.replace(/\.+$/, '')
  return host.includes('.') && host.length <= 253 ? host : undefined
}

function indexOf(pattern: RegExp, text: string): number {
  pattern.lastIndex = 0
  return pattern.exec(text)?.index ?? text.length
}
