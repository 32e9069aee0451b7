import { isUrl } from '../../protocol/is-url.js'
import {
  type EntityLink,
  findLinks,
  findMentions,
  findTags,
  type Mention,
  type TextRange,
} from '../../protocol/mentions.js'
import { type MarkPair, pairMarks } from './pair-marks.js'
import { noReferences, type References, referenceKey } from './references.js'

/** What stands in a line of what somebody wrote. */
export type Inline =
  | { readonly type: 'text' | 'code' | 'tag'; readonly text: string }
  | { readonly type: 'break' }
  | { readonly type: 'strong' | 'emphasis' | 'struck'; readonly content: readonly Inline[] }
  | { readonly type: 'link'; readonly url: string; readonly content: readonly Inline[] }
  | { readonly type: 'picture'; readonly url: string; readonly text: string }
  /** Words with an address that is none of the web, and all its signs: `[words](/somewhere)`, `[words][1]`. */
  | {
      readonly type: 'unlinked'
      readonly before: string
      readonly content: readonly Inline[]
      readonly behind: readonly Inline[]
    }
  | { readonly type: 'mention'; readonly mention: Mention }
  | { readonly type: 'entity'; readonly link: EntityLink; readonly text: string }

interface Found {
  readonly inline: Inline
  readonly end: number
}

/** Deeper than this, marks are shown as they stand. */
const DEEPEST = 4
const LONGEST_URL = 2_048

/** A text, and what is known about it. */
interface Reading {
  readonly text: string
  readonly nextOf: NextOf
  readonly references: References
  readonly depth: number
}

/** Reads the common part of Markdown, in linear time whatever the text is made of; HTML is text like any other. */
export function readInline(text: string, references = noReferences, depth = 0): Inline[] {
  if (text !== '' && isPlain(text)) return [{ type: 'text', text }]
  const spans = findSpans(text)
  const stops = stopsIn(text, spans)
  const pairs = depth === DEEPEST ? undefined : pairMarks(text, markRuns(text, stops, spans))
  const reading: Reading = { text, nextOf: searcher(text), references, depth }
  const inlines: Inline[] = []
  let plain = ''

  let at = 0
  for (const stop of stops) {
    if (stop < at) continue
    plain += text.slice(at, stop)
    at = stop
    const escaped = isEscaped(text, at)
    const found = escaped
      ? undefined
      : (spans.get(at) ?? codeAt(text, at, reading.nextOf) ?? lineAt(text, at) ?? deeper(at))
    if (found !== undefined) {
      if (plain !== '') inlines.push({ type: 'text', text: plain })
      plain = ''
      inlines.push(found.inline)
      at = found.end
      continue
    }
    const length = escaped ? 2 : 1
    plain += text.charAt(at + length - 1)
    at += length
  }
  plain += text.slice(at)
  if (plain !== '') inlines.push({ type: 'text', text: plain })
  return inlines

  function deeper(at: number): Found | undefined {
    if (pairs === undefined) return undefined
    const linked = linkedPictureAt(reading, at) ?? linkAt(reading, at) ?? referenceAt(reading, at)
    return linked ?? markedAt(reading, at, pairs.get(at))
  }
}

/** Most of what stands between two marks: it holds no sign with which anything begins or is addressed. */
function isPlain(text: string): boolean {
  return !/[\\`\n![*_~#@:]/.test(text)
}

/** Where something may begin, in order. Most of a text is plain, and need not be looked at sign by sign. */
function stopsIn(text: string, spans: ReadonlyMap<number, Found>): readonly number[] {
  const signs = Array.from(text.matchAll(/[\\`\n![*_~]/g), ({ index }) => index)
  return spans.size === 0 ? signs : [...signs, ...spans.keys()].sort((one, other) => one - other)
}

/** Signs that may mark what is between them; those in code and in what is found by its own form mean nothing. */
function* markRuns(text: string, stops: readonly number[], spans: ReadonlyMap<number, Found>): Generator<TextRange> {
  const nextOf = searcher(text)
  let at = 0
  for (const start of stops) {
    if (start < at) continue
    const end = runEnd(text, start)
    if (end !== undefined) yield { start, end }
    at = end ?? (isEscaped(text, start) ? start + 2 : ((spans.get(start) ?? codeAt(text, start, nextOf))?.end ?? start))
  }
}

function runEnd(text: string, start: number): number | undefined {
  const sign = text.charAt(start)
  if (sign !== '*' && sign !== '_' && sign !== '~') return undefined
  let end = start + 1
  while (text[end] === sign) end += 1
  return end
}

function isEscaped(text: string, at: number): boolean {
  return text[at] === '\\' && /[!-/:-@[-`{-~]/.test(text.charAt(at + 1))
}

/** Everything that is found by its own form, by where it begins; what begins inside of something else is never reached. */
function findSpans(text: string): Map<number, Found> {
  const spans = new Map<number, Found>()
  for (const { start, end } of findTags(text)) {
    spans.set(start, { inline: { type: 'tag', text: text.slice(start, end) }, end })
  }
  for (const { index, 0: url } of text.matchAll(/(?<![\w/])https?:\/\/[^\s<>"'`\\^{|}]{1,2048}/gi)) {
    const bracketed = text[index - 1] === '<' && text[index - 2] !== '\\' && text[index + url.length] === '>'
    const address = bracketed ? url : withoutTail(url)
    if (!isUrl(address)) continue
    const [start, end] = bracketed ? [index - 1, index + url.length + 1] : [index, index + address.length]
    spans.set(start, { inline: { type: 'link', url: address, content: [{ type: 'text', text: address }] }, end })
  }
  for (const { start, end, ...link } of findLinks(text)) {
    spans.set(start, { inline: { type: 'entity', link, text: text.slice(start, end) }, end })
  }
  for (const { start, end, ...mention } of findMentions(text)) {
    spans.set(start, { inline: { type: 'mention', mention }, end })
  }
  return spans
}

/** A full stop behind an address belongs to the sentence, and a bracket to whoever opened it. */
function withoutTail(url: string): string {
  const tail = url.includes('(') ? '.,:;!?*_~]' : '.,:;!?*_~])'
  let end = url.length
  while (end > 0 && tail.includes(url.charAt(end - 1))) end -= 1
  return url.slice(0, end)
}

/** Where something comes next. What is far away, or not there at all, is searched for once. */
function searcher(text: string): (what: string, from: number) => number {
  const known = new Map<string, number>()
  return (what, from) => {
    const before = known.get(what)
    if (before !== undefined && (before === -1 || before >= from)) return before
    const next = text.indexOf(what, from)
    known.set(what, next)
    return next
  }
}

type NextOf = ReturnType<typeof searcher>

function lineAt(text: string, at: number): Found | undefined {
  return text[at] === '\n' ? { inline: { type: 'break' }, end: at + 1 } : undefined
}

function codeAt(text: string, at: number, nextOf: NextOf): Found | undefined {
  if (text[at] !== '`') return undefined
  const end = nextOf('`', at + 1)
  if (end <= at + 1) return undefined
  return { inline: { type: 'code', text: text.slice(at + 1, end) }, end: end + 1 }
}

/** `[text](address)`, and `![text](address)` for a picture; a link only where the address is one of the web. */
function linkAt({ text, nextOf, references, depth }: Reading, at: number): Found | undefined {
  const start = labelStart(text, at)
  if (start === undefined) return undefined
  const middle = nextOf('](', start)
  if (middle === -1) return undefined
  const label = text.slice(start, middle)
  // An opening bracket in between begins the link that is meant.
  if (label.includes('[') || label.includes('\n\n')) return undefined
  const close = closeOf(text, middle + 2)
  if (close === undefined) return undefined
  const target = text.slice(middle + 2, close).trim()
  const url = (target.split(/\s/)[0] ?? '').replace(/^<(.*)>$/, '$1')
  const before = text.slice(at, start)
  if (!/^https?:\/\//i.test(url) || !isUrl(url)) {
    if (!/^\S*(\s+["'(].*)?$/s.test(target)) return undefined
    const content = readInline(label, references, depth + 1)
    const behind = readInline(text.slice(middle, close + 1), references, depth + 1)
    return { inline: { type: 'unlinked', before, content, behind }, end: close + 1 }
  }
  const shown = label.trim() === '' ? url : label
  const inline: Inline = before.startsWith('!')
    ? { type: 'picture', url, text: shown }
    : { type: 'link', url, content: withoutLinks(readInline(shown, references, depth + 1)) }
  return { inline, end: close + 1 }
}

/** Behind `[`, or `![` of a picture. */
function labelStart(text: string, at: number): number | undefined {
  if (text[at] === '[') return at + 1
  return text.startsWith('![', at) ? at + 2 : undefined
}

/** The bracket that closes an address; a pair of brackets may be part of it. */
function closeOf(text: string, start: number): number | undefined {
  const length = text.slice(start, start + LONGEST_URL).indexOf(')')
  if (length === -1) return undefined
  const close = start + length
  if (!/\([^\s()]*$/.test(text.slice(start, close))) return close
  const rest = /[^\s()]{0,2048}\)/y
  rest.lastIndex = close + 1
  return rest.test(text) ? rest.lastIndex - 1 : close
}

/** `[![text](address)](address)`: the picture stays what leads somewhere, and the rest are signs around it. */
function linkedPictureAt(reading: Reading, at: number): Found | undefined {
  const { text, references, depth } = reading
  if (!text.startsWith('[![', at)) return undefined
  const picture = linkAt(reading, at + 1)
  if (picture === undefined || !text.startsWith('](', picture.end)) return undefined
  const close = closeOf(text, picture.end + 2)
  if (close === undefined) return undefined
  const behind = readInline(text.slice(picture.end, close + 1), references, depth + 1)
  return { inline: { type: 'unlinked', before: '[', content: [picture.inline], behind }, end: close + 1 }
}

/** `[text][1]`, where the text says elsewhere what 1 is, `[text][]` and `[text]`. */
function referenceAt({ text, nextOf, references, depth }: Reading, at: number): Found | undefined {
  const start = labelStart(text, at)
  if (start === undefined || references.size === 0) return undefined
  const middle = nextOf(']', start)
  const label = text.slice(start, middle)
  if (middle === -1 || label.includes('[')) return undefined
  const close = text[middle + 1] === '[' ? nextOf(']', middle + 2) : middle
  const name = text.slice(middle + 2, close).trim() || label
  if (close === -1 || !references.has(referenceKey(name))) return undefined
  const content = readInline(label, references, depth + 1)
  const behind: Inline = { type: 'text', text: text.slice(middle, close + 1) }
  return { inline: { type: 'unlinked', before: text.slice(at, start), content, behind: [behind] }, end: close + 1 }
}

/** A link inside of a link would end it. */
function withoutLinks(inlines: readonly Inline[]): Inline[] {
  return inlines.flatMap((inline) => {
    if (inline.type === 'link') return withoutLinks(inline.content)
    if (inline.type === 'picture') return [{ type: 'text', text: inline.text }]
    if (inline.type === 'entity') return [{ type: 'text', text: inline.text }]
    if (inline.type === 'mention') return [{ type: 'text', text: inline.mention.name ?? inline.mention.address }]
    return 'content' in inline ? [{ ...inline, content: withoutLinks(inline.content) }] : [inline]
  })
}

function markedAt({ text, references, depth }: Reading, at: number, pair: MarkPair | undefined): Found | undefined {
  if (pair === undefined) return undefined
  const { type, length, close } = pair
  const content = readInline(text.slice(at + length, close), references, depth + 1)
  return { inline: { type, content }, end: close + length }
}
