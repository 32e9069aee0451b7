import { isAddress, parseAddress } from './address.js'
import { isGuid } from './values.js'

/** A person named in a text as `@{alice@pod.example}` or `@{Alice; alice@pod.example}`. */
export interface Mention {
  readonly address: string
  readonly name: string | undefined
}

/** An entity linked in a text as `diaspora://alice@pod.example/post/0123456789abcdef`. */
export interface EntityLink {
  readonly author: string
  readonly type: string
  readonly guid: string
}

/** A range of a text: `start` is included, `end` is not. */
export interface TextRange {
  readonly start: number
  readonly end: number
}

/** All mentioned people, in order of the text. */
export function readMentions(text: string): Mention[] {
  return findMentions(text).map(({ address, name }) => ({ address, name }))
}

/** All links to entities, in order of the text; a full stop after a link is not part of it. */
export function readLinks(text: string): EntityLink[] {
  return findLinks(text).map(({ author, type, guid }) => ({ author, type, guid }))
}

/** All tags in lower case and without `#`, each once, in order. */
export function readTags(text: string): string[] {
  return [...new Set(findTags(text).map(({ tag }) => tag))]
}

/**
 * Linear: each brace is examined once. A regular expression would restart at each unclosed `@{`.
 */
export function findMentions(text: string): (Mention & TextRange)[] {
  const mentions: (Mention & TextRange)[] = []
  let from = 0
  for (let close = text.indexOf('}'); close !== -1; close = text.indexOf('}', from)) {
    const mention = mentionIn(text.slice(from, close))
    if (mention !== undefined) mentions.push({ ...mention, start: from + mention.start, end: close + 1 })
    from = close + 1
  }
  return mentions
}

export function findLinks(text: string): (EntityLink & TextRange)[] {
  const links: (EntityLink & TextRange)[] = []
  const scheme = 'diaspora://'
  let from = text.indexOf(scheme)
  while (from !== -1) {
    const link = linkAt(text, from + scheme.length)
    const start = text.startsWith('web+', from - 4) ? from - 4 : from
    if (link !== undefined) links.push({ ...link.link, start, end: link.end })
    from = text.indexOf(scheme, link?.end ?? from + scheme.length)
  }
  return links
}

/** The characters of a tag, for a regular expression. Armenian marks occur inside words but are not letters. */
export const TAG_CHARACTERS = '\\p{L}\\p{M}\\p{N}\\p{Pc}\\u055B\\u055C\\u055E\\u058A-'

const TAG = new RegExp(`(?<!\\S)#([${TAG_CHARACTERS}]{1,255}|<3)(?![${TAG_CHARACTERS}])`, 'gu')

export function findTags(text: string): ({ readonly tag: string } & TextRange)[] {
  if (!text.includes('#')) return []
  const tagMatches = text.matchAll(TAG)
  return Array.from(tagMatches, ({ 0: all, 1: tag = '', index }) => ({
    tag: tag.toLowerCase(),
    start: index,
    end: index + all.length,
  }))
}

/** The mention in the text between two closing braces: it begins at the first `@{` that a valid mention can follow. */
function mentionIn(section: string): (Mention & { readonly start: number }) | undefined {
  const lastBlank = section.lastIndexOf(' ')
  const mayBeNamed = section[lastBlank - 1] === ';' && lastBlank < section.length - 1
  for (let at = section.indexOf('@{'); at !== -1; at = section.indexOf('@{', at + 1)) {
    const start = at + 2
    const isNamed = mayBeNamed && start < lastBlank - 1
    if (!isNamed && (start <= lastBlank || start >= section.length)) continue
    const address = addressAt(section, isNamed ? lastBlank + 1 : start)
    const name = isNamed ? section.slice(start, lastBlank - 1) : undefined
    return address === undefined ? undefined : { address, name, start: at }
  }
  return undefined
}

function addressAt(section: string, start: number): string | undefined {
  return section.length - start > maxAddressCharacters ? undefined : parseAddress(section.slice(start))
}

// UTF-16 units of 255 code points.
const maxAddressCharacters = 2 * 255

const type = /[a-z_]*/y
const guidCharacters = /[0-9A-Za-z_@.:-]*/y

function linkAt(text: string, start: number): { link: EntityLink; end: number } | undefined {
  const slash = text.slice(start, start + maxAddressCharacters + 1).indexOf('/')
  if (slash === -1) return undefined
  const author = text.slice(start, start + slash)
  if (!isAddress(author)) return undefined

  const typeStart = start + slash + 1
  const typeName = runAt(type, text, typeStart)
  const guidStart = typeStart + typeName.length + 1
  if (text[guidStart - 1] !== '/') return undefined
  let end = guidStart + runAt(guidCharacters, text, guidStart).length
  while (end > guidStart && !/[0-9A-Za-z]/.test(text.charAt(end - 1))) end -= 1
  const guid = text.slice(guidStart, end)
  return isGuid(guid) ? { link: { author, type: typeName, guid }, end } : undefined
}

function runAt(pattern: RegExp, text: string, start: number): string {
  pattern.lastIndex = start
  return pattern.exec(text)?.[0] ?? ''
}
