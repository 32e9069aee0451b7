import type { Mention } from '../../protocol/mentions.js'
import { fits } from '../../protocol/values.js'
import type { Inline } from './read-inline.js'
import { type Block, readText } from './read-text.js'
import { readReferences } from './references.js'

const LONGEST_TITLE = 70
const LONGEST_HEADING = 200
const LONGEST_SUMMARY = 200
/** Marks take room as well; who needs more than this for two hundred characters is not summarised but cut. */
const SUMMARISED = 2_000
const MOST_TITLES = 4_000

/** What a mention is read as. */
export type NameOf = (mention: Mention) => string

const asWritten: NameOf = ({ name, address }) => name ?? address

/** The beginning of a text without its marks, on one line: for where there is no room. */
export function summaryOf(text: string): string {
  return shortened(plainBlocks(readBeginning(text), asWritten), LONGEST_SUMMARY)
}

/** What a post is called: its heading, else its beginning; undefined: it has no text. */
export function titleOf(text: string, nameOf = asWritten): string | undefined {
  // A title with somebody in it changes with their name, and a long text is not worth the room it would take.
  if (text.length > SUMMARISED || text.includes('@{')) return readTitle(text, nameOf)
  const known = titles.get(text)
  if (known !== undefined) return known === '' ? undefined : known
  const title = readTitle(text, nameOf)
  if (titles.size >= MOST_TITLES) titles.clear()
  titles.set(text, title ?? '')
  return title
}

/** By the texts they belong to: a text has one title for ever, and the same posts are shown to many. */
const titles = new Map<string, string>()

function readTitle(text: string, nameOf: NameOf): string | undefined {
  const blocks = readBeginning(text)
  const [first] = blocks
  const heading = first?.type === 'heading' ? plainBlocks([first], nameOf) : ''
  const title = heading !== '' && fits(heading, LONGEST_HEADING) ? heading : plainBlocks(blocks, nameOf)
  return title === '' ? undefined : shortened(title, LONGEST_TITLE)
}

/** Cut, with three dots to show it. */
export function shortened(text: string, longest: number): string {
  if (text.length <= longest) return text
  const characters = [...text]
  return characters.length <= longest ? text : `${characters.slice(0, longest - 3).join('')}...`
}

/** What it refers to may stand at its end. */
function readBeginning(text: string): Block[] {
  return readText(beginningOf(text), readReferences(text))
}

/** Without half a sign at its end. */
function beginningOf(text: string): string {
  return text
    .trimStart()
    .slice(0, SUMMARISED)
    .replace(/[\ud800-\udbff]$/, '')
}

function plainBlocks(blocks: readonly Block[], nameOf: NameOf): string {
  return onOneLine(blocks.map((block) => plainBlock(block, nameOf)).join(' '))
}

function plainBlock(block: Block, nameOf: NameOf): string {
  switch (block.type) {
    case 'paragraph':
    case 'heading':
      return plainInlines(block.content, nameOf)
    case 'code':
      return block.text
    case 'list':
      return block.items.map((item) => plainInlines(item, nameOf)).join(' ')
    case 'quote':
      return block.blocks.map((inner) => plainBlock(inner, nameOf)).join(' ')
    case 'rule':
    case 'references':
      return ''
  }
}

function plainInlines(inlines: readonly Inline[], nameOf: NameOf): string {
  return inlines.map((inline) => plainInline(inline, nameOf)).join('')
}

function plainInline(inline: Inline, nameOf: NameOf): string {
  switch (inline.type) {
    case 'text':
    case 'code':
    case 'tag':
    case 'picture':
    case 'entity':
      return inline.text
    case 'break':
      return ' '
    case 'mention':
      return nameOf(inline.mention)
    case 'strong':
    case 'emphasis':
    case 'struck':
    case 'link':
    case 'unlinked':
      return plainInlines(inline.content, nameOf)
  }
}

function onOneLine(text: string): string {
  return text.replace(/\s{2,}|[^\S ]/g, ' ').trim()
}
