import MarkdownIt from 'markdown-it'
import { isWordCharacter } from './normal-form.js'

const { unescapeAll } = new MarkdownIt().utils

/** Escaped characters, character references, marks of emphasis and code, brackets of links, and quotes at the start of a line. */
const MARKUP =
  /\\[\n!-/:-@[-`{-~]|&#?[a-z0-9]{1,31};|[*`]+|_+|~{2,}|!?\[|\](?:\(|\[[^[\]\n]{0,99}\])?|\n[ \t>]*>[ \t]*/gi

/**
 * A text of Markdown approximately as a reader sees it: without marks, with decoded character references, and with the addresses of
 * its links at the end. Marks without a partner are removed as well, because filters compare the written text too. Takes linear time.
 */
export function shownText(text: string): string {
  const addresses: string[] = []
  const characters = new Map<string, string>() // decoding costs most
  const closings = text.includes('](') ? findClosings(text) : new Map<number, number>()
  const hasDefinitions = text.includes(']:')
  let shown = ''
  let from = 0
  for (const { 0: mark, index } of text.matchAll(MARKUP)) {
    if (index < from) continue // part of an address
    shown += text.slice(from, index)
    from = index + mark.length
    const closing = mark === '](' ? closings.get(from - 1) : undefined
    if (closing !== undefined) {
      addresses.push(unescapeAll(text.slice(from, closing)))
      from = closing + 1
    } else if (mark.startsWith('_')) {
      // Underscores within a word are part of it: `snake_case`.
      if (isWordCharacter(text, index - 1) && isWordCharacter(text, from)) shown += mark
    } else if (mark.startsWith('&')) {
      const character = characters.get(mark) ?? unescapeAll(mark)
      characters.set(mark, character)
      shown += character
    } else shown += shownMark(mark, hasDefinitions)
  }
  return [shown + text.slice(from), ...addresses].join(' ')
}

function shownMark(mark: string, hasDefinitions: boolean): string {
  switch (mark[0]) {
    case '\\':
      return mark.slice(1)
    case '\n':
      return '\n'
    case ']':
      return hasDefinitions ? '' : mark.slice(1)
    default:
      return ''
  }
}

/** The index of the closing parenthesis for each opening one. */
function findClosings(text: string): ReadonlyMap<number, number> {
  const closings = new Map<number, number>()
  const open: number[] = []
  for (const { 0: parenthesis, index } of text.matchAll(/\\.|[()]/g)) {
    if (parenthesis === '(') open.push(index)
    else if (parenthesis === ')') {
      const opening = open.pop()
      if (opening !== undefined) closings.set(opening, index)
    }
  }
  return closings
}
