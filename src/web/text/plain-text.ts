import { LRUCache } from 'lru-cache'
import type { Token } from 'markdown-it'
import type { Mention } from '../../protocol/mentions.js'
import { firstCharacters, isWithinLength } from '../../protocol/values.js'
import { createMarkdown, parseBlocks, REFERENCE, referenceOf } from './markdown.js'

const MAX_TITLE_CHARACTERS = 70
const MAX_HEADING_CHARACTERS = 200
const MAX_SUMMARY_CHARACTERS = 200
/** Only the beginning of a text is parsed: with its marks, two hundred characters rarely take more. */
const MAX_PARSED_CHARACTERS = 2_000
const MAX_DEFINITIONS = 100
const MAX_TITLES = 4_000

/** The text that replaces a mention. */
export type NameOf = (mention: Mention) => string

const asWritten: NameOf = ({ name, address }) => name ?? address

/** Links are shown without their URLs, so relative URLs are accepted as well. `[Note]: done` is text. */
const markdown = createMarkdown((url) => /[/:#]/.test(url))

/** The beginning of a text on one line, without marks. */
export function buildSummary(text: string): string {
  return shorten(plainText(parseBeginning(text), asWritten), MAX_SUMMARY_CHARACTERS)
}

/** The title of a post: its heading, else its beginning; undefined: it has no text. */
export function buildTitle(text: string, nameOf = asWritten): string | undefined {
  // A title with a mention changes with the name of the person, and a long text takes too much memory.
  if (text.length > MAX_PARSED_CHARACTERS || text.includes('@{')) return readTitle(text, nameOf)
  const cachedTitle = titles.get(text)
  if (cachedTitle !== undefined) return cachedTitle === '' ? undefined : cachedTitle
  const title = readTitle(text, nameOf)
  titles.set(text, title ?? '')
  return title
}

/** Titles by text: the title of a text never changes, and many readers see the same posts. */
const titles = new LRUCache<string, string>({ max: MAX_TITLES })

function readTitle(text: string, nameOf: NameOf): string | undefined {
  const tokens = parseBeginning(text)
  const heading = tokens[0]?.type === 'heading_open' ? plainText(tokens.slice(0, 3), nameOf) : ''
  const title = heading !== '' && isWithinLength(heading, MAX_HEADING_CHARACTERS) ? heading : plainText(tokens, nameOf)
  return title === '' ? undefined : shorten(title, MAX_TITLE_CHARACTERS)
}

/** The text, or its beginning with three dots. */
export function shorten(text: string, maxCharacters: number): string {
  return isWithinLength(text, maxCharacters) ? text : `${firstCharacters(text, maxCharacters - 3)}...`
}

/** Parses the beginning with the link definitions (`[1]: https://…`) of the whole text, which usually are its last lines. */
function parseBeginning(text: string): Token[] {
  const trimmedText = text.trimStart()
  const beginning = trimmedText.slice(0, MAX_PARSED_CHARACTERS).replace(/[\ud800-\udbff]$/, '')
  const rest =
    trimmedText.length > MAX_PARSED_CHARACTERS && text.includes(']:') ? trimmedText.slice(MAX_PARSED_CHARACTERS) : ''
  const definitions = rest.match(/^ {0,3}\[[^[\]\n]{1,200}\]:.*$/gm)?.slice(0, MAX_DEFINITIONS) ?? []
  return parseBlocks(markdown, [beginning, ...definitions].join('\n\n'))
}

function plainText(tokens: readonly Token[], nameOf: NameOf): string {
  return onOneLine(tokens.map((token) => plainToken(token, nameOf)).join(' '))
}

/** The text of a block. */
function plainToken({ type, content, children }: Token, nameOf: NameOf): string {
  if (type === 'inline') return plainInlines(children ?? [], nameOf)
  return type === 'fence' || type === 'code_block' ? content : ''
}

function plainInlines(tokens: readonly Token[], nameOf: NameOf): string {
  return tokens.map((token) => plainInline(token, nameOf)).join('')
}

function plainInline(token: Token, nameOf: NameOf): string {
  switch (token.type) {
    case 'softbreak':
    case 'hardbreak':
      return ' '
    case 'image':
      return plainInlines(token.children ?? [], nameOf)
    case REFERENCE: {
      const reference = referenceOf(token)
      return reference.type === 'mention' ? nameOf(reference.mention) : reference.text
    }
    default:
      return token.content
  }
}

function onOneLine(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, ' ').trim()
}
