import type { Inline } from './read-inline.js'
import { type Block, readText } from './read-text.js'

const LONGEST_TITLE = 70
const LONGEST_HEADING = 200
const LONGEST_SUMMARY = 200
/** Marks take room as well; who needs more than this for two hundred characters is not summarised but cut. */
const SUMMARISED = 2_000

/** A text without its marks, on one line. */
export function plainText(text: string): string {
  return plainBlocks(readText(text))
}

/** The beginning of a text in a few words, for where there is no room. */
export function summaryOf(text: string): string {
  return shortened(plainText(text.slice(0, SUMMARISED)), LONGEST_SUMMARY)
}

/** What a post is called: its heading, else its beginning; undefined: it has no text. */
export function titleOf(text: string): string | undefined {
  const blocks = readText(text.slice(0, SUMMARISED))
  const [first] = blocks
  const heading = first?.type === 'heading' ? plainBlocks([first]) : ''
  const title = heading !== '' && heading.length <= LONGEST_HEADING ? heading : plainBlocks(blocks)
  return title === '' ? undefined : shortened(title, LONGEST_TITLE)
}

/** Cut, with three dots to show it. */
export function shortened(text: string, longest: number): string {
  const characters = [...text]
  return characters.length <= longest ? text : `${characters.slice(0, longest - 3).join('')}...`
}

function plainBlocks(blocks: readonly Block[]): string {
  return onOneLine(blocks.map(plainBlock).join(' '))
}

function plainBlock(block: Block): string {
  switch (block.type) {
    case 'paragraph':
    case 'heading':
      return block.content.map(plainInline).join('')
    case 'code':
      return block.text
    case 'list':
      return block.items.map((item) => item.map(plainInline).join('')).join(' ')
    case 'quote':
      return block.blocks.map(plainBlock).join(' ')
    case 'rule':
      return ''
  }
}

function plainInline(inline: Inline): string {
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
      return inline.mention.name ?? inline.mention.address
    case 'strong':
    case 'emphasis':
    case 'struck':
    case 'link':
      return inline.content.map(plainInline).join('')
  }
}

function onOneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
