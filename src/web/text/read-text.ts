import { type Inline, readInline } from './read-inline.js'
import { type References, readReferences, reference } from './references.js'

/** What somebody wrote, as far as its form is known. */
export type Block =
  | { readonly type: 'paragraph'; readonly content: readonly Inline[] }
  | { readonly type: 'heading'; readonly level: number; readonly content: readonly Inline[] }
  | { readonly type: 'code'; readonly text: string }
  | { readonly type: 'list'; readonly ordered: boolean; readonly items: readonly (readonly Inline[])[] }
  | { readonly type: 'quote'; readonly blocks: readonly Block[] }
  | { readonly type: 'references'; readonly content: readonly Inline[] }
  | { readonly type: 'rule' }

const DEEPEST_QUOTE = 4

const fence = /^ {0,3}(`{3,}|~{3,})/
const heading = /^(#{1,6})[ \t]+(\S.*)$/
const underline = /^ {0,3}(=+|-+)[ \t]*$/
const rule = /^ {0,3}([-*_])( *\1){2,} *$/
const quote = /^ {0,3}> ?/
const bullet = /^ {0,3}[-*+][ \t]+/
const number = /^ {0,3}\d{1,9}[.)][ \t]+/

/** Reads the common part of Markdown: each line belongs to one block, and is looked at a fixed number of times. */
export function readText(text: string, references = readReferences(text), depth = 0): Block[] {
  const lines = text.replace(/\r\n?/g, '\n').split('\n')
  const blocks: Block[] = []
  for (let at = 0; at < lines.length; ) {
    const [block, taken] = blockAt(lines, at, references, depth)
    if (block !== undefined) blocks.push(block)
    at += taken
  }
  return blocks
}

/** The block that begins at a line, and how many lines it takes. */
function blockAt(
  lines: readonly string[],
  at: number,
  references: References,
  depth: number,
): [block: Block | undefined, taken: number] {
  const line = lines[at] ?? ''
  if (line.trim() === '') return [undefined, 1]

  const [, marks] = fence.exec(line) ?? []
  if (marks !== undefined) {
    const code = linesWhile(lines, at + 1, (next) => !next.trimStart().startsWith(marks))
    return [{ type: 'code', text: code.join('\n') }, code.length + 2]
  }
  const [, signs, title] = heading.exec(line) ?? []
  if (signs !== undefined && title !== undefined) {
    return [{ type: 'heading', level: signs.length, content: readInline(withoutHashes(title), references) }, 1]
  }
  if (rule.test(line)) return [{ type: 'rule' }, 1]
  if (quote.test(line) && depth < DEEPEST_QUOTE) {
    const quoted = linesWhile(lines, at, (next) => quote.test(next)).map((next) => next.replace(quote, ''))
    return [{ type: 'quote', blocks: readText(quoted.join('\n'), references, depth + 1) }, quoted.length]
  }
  const sign = [bullet, number].find((one) => one.test(line))
  if (sign !== undefined) {
    const items = linesWhile(lines, at, (next) => sign.test(next) && !rule.test(next))
    const list = items.map((item) => readInline(item.replace(sign, ''), references))
    return [{ type: 'list', ordered: sign === number, items: list }, items.length]
  }
  if (reference.test(line)) {
    const places = linesWhile(lines, at, (next) => reference.test(next))
    return [{ type: 'references', content: readInline(places.join('\n').trim()) }, places.length]
  }
  return paragraphAt(lines, at, references)
}

function paragraphAt(lines: readonly string[], at: number, references: References): [block: Block, taken: number] {
  const rest = linesWhile(lines, at + 1, (next) => next.trim() !== '' && !interrupts(next))
  const content = readInline([lines[at] ?? '', ...rest].join('\n').trim(), references)
  const taken = rest.length + 1
  const [, signs] = underline.exec(lines[at + taken] ?? '') ?? []
  if (signs === undefined) return [{ type: 'paragraph', content }, taken]
  return [{ type: 'heading', level: signs.startsWith('=') ? 1 : 2, content }, taken + 1]
}

function interrupts(line: string): boolean {
  return [fence, heading, underline, rule, quote, bullet, reference].some((pattern) => pattern.test(line))
}

function linesWhile(lines: readonly string[], from: number, belongs: (line: string) => boolean): string[] {
  let end = from
  while (end < lines.length && belongs(lines[end] ?? '')) end += 1
  return lines.slice(from, end)
}

function withoutHashes(title: string): string {
  let end = title.length
  while (end > 0 && ' \t#'.includes(title.charAt(end - 1))) end -= 1
  return title.slice(0, end)
}
