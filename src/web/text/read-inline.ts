import { type EntityLink, findLinks, findMentions, findTags, type Mention } from '../../protocol/mentions.js'

/** What stands in a line of what somebody wrote. */
export type Inline =
  | { readonly type: 'text' | 'code' | 'tag'; readonly text: string }
  | { readonly type: 'break' }
  | { readonly type: 'strong' | 'emphasis' | 'struck'; readonly content: readonly Inline[] }
  | { readonly type: 'link'; readonly url: string; readonly content: readonly Inline[] }
  | { readonly type: 'picture'; readonly url: string; readonly text: string }
  | { readonly type: 'mention'; readonly mention: Mention }
  | { readonly type: 'entity'; readonly link: EntityLink; readonly text: string }

interface Found {
  readonly inline: Inline
  readonly end: number
}

/** Deeper than this, marks are shown as they stand. */
const DEEPEST = 4
const LONGEST_URL = 2_048

const marks = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'struck'],
  ['*', 'emphasis'],
  ['_', 'emphasis'],
] as const

/** Reads the common part of Markdown, in one pass whatever the text is made of; HTML is text like any other. */
export function readInline(text: string, depth = 0): Inline[] {
  const spans = findSpans(text)
  const nextOf = searcher(text)
  const inlines: Inline[] = []
  let plain = ''

  let at = 0
  for (const stop of stopsIn(text, spans)) {
    if (stop < at) continue
    plain += text.slice(at, stop)
    at = stop
    const escaped = text[at] === '\\' && /[!-/:-@[-`{-~]/.test(text.charAt(at + 1))
    const found = escaped ? undefined : (spans.get(at) ?? codeAt(text, at, nextOf) ?? lineAt(text, at) ?? deeper(at))
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
    return depth === DEEPEST ? undefined : (linkAt(text, at, nextOf, depth) ?? markedAt(text, at, nextOf, depth))
  }
}

/** Where something may begin, in order. Most of a text is plain, and need not be looked at sign by sign. */
function stopsIn(text: string, spans: ReadonlyMap<number, Found>): Iterable<number> {
  const signs = Array.from(text.matchAll(/[\\`\n![*_~]/g), ({ index }) => index)
  return spans.size === 0 ? signs : [...signs, ...spans.keys()].sort((one, other) => one - other)
}

/** Everything that is found by its own form, by where it begins; what begins inside of something else is never reached. */
function findSpans(text: string): Map<number, Found> {
  const spans = new Map<number, Found>()
  for (const { start, end } of findTags(text)) {
    spans.set(start, { inline: { type: 'tag', text: text.slice(start, end) }, end })
  }
  for (const { index, 0: url } of text.matchAll(/(?<![\w/])https?:\/\/[^\s<>"'`\\^{|}]{1,2048}/gi)) {
    const end = index + withoutTail(url).length
    const address = text.slice(index, end)
    if (URL.canParse(address)) {
      spans.set(index, { inline: { type: 'link', url: address, content: [{ type: 'text', text: address }] }, end })
    }
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

/** `[text](address)`, and `![text](address)` for a picture; only of the web. */
function linkAt(text: string, at: number, nextOf: NextOf, depth: number): Found | undefined {
  const isPicture = text[at] === '!' && text[at + 1] === '['
  if (!isPicture && text[at] !== '[') return undefined
  const start = at + (isPicture ? 2 : 1)
  const middle = nextOf('](', start)
  if (middle === -1) return undefined
  const label = text.slice(start, middle)
  // An opening bracket in between begins the link that is meant.
  if (label.includes('[') || label.includes('\n\n')) return undefined
  const close = nextOf(')', middle + 2)
  if (close === -1 || close - middle > LONGEST_URL) return undefined
  const url =
    text
      .slice(middle + 2, close)
      .trim()
      .split(/\s/)[0] ?? ''
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) return undefined
  const shown = label.trim() === '' ? url : label
  const inline: Inline = isPicture
    ? { type: 'picture', url, text: shown }
    : { type: 'link', url, content: withoutLinks(readInline(shown, depth + 1)) }
  return { inline, end: close + 1 }
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

function markedAt(text: string, at: number, nextOf: NextOf, depth: number): Found | undefined {
  const mark = marks.find(([sign]) => text.startsWith(sign, at))
  if (mark === undefined) return undefined
  const [sign, type] = mark
  const start = at + sign.length
  // In the middle of a word, an underscore is a letter.
  if (sign.startsWith('_') && /\w/.test(text.charAt(at - 1))) return undefined
  if (/\s|^$/.test(text.charAt(start))) return undefined
  const end = nextOf(sign, start)
  if (end <= start || /\s/.test(text.charAt(end - 1))) return undefined
  if (sign.startsWith('_') && /\w/.test(text.charAt(end + sign.length))) return undefined
  return { inline: { type, content: readInline(text.slice(start, end), depth + 1) }, end: end + sign.length }
}
