import MarkdownItParser, { type Env, type MarkdownIt, type StateInline, type Token } from 'markdown-it'
import {
  type EntityLink,
  findLinks,
  findMentions,
  findTags,
  type Mention,
  type TextRange,
} from '../../protocol/mentions.js'

/** Deeper quotes, lists and emphasis are not read: each level of a nested quote is read again for every line. */
const MAX_NESTING = 50

/** A part of a text with a meaning in this network: `@{…}`, `#tag` or `diaspora://…`. */
export type Reference =
  | { readonly type: 'mention'; readonly mention: Mention }
  | { readonly type: 'tag'; readonly text: string }
  | { readonly type: 'entity'; readonly link: EntityLink; readonly text: string }

/** The type of the token that the rule below adds; `referenceOf` returns its content. */
export const REFERENCE = 'reference'

/** A parser of Markdown without HTML. Links whose address is rejected by `isLinkAllowed` stay text. */
export function createMarkdown(isLinkAllowed: (url: string) => boolean): MarkdownIt {
  const markdown = MarkdownItParser({ html: false, breaks: true, linkify: true, maxNesting: MAX_NESTING })
  markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false, fuzzyIP: false })
  for (const scheme of ['ftp:', 'mailto:', '//']) markdown.linkify.add(scheme, null)
  markdown.validateLink = isLinkAllowed
  markdown.normalizeLinkText = (url) => url
  markdown.inline.ruler.after('text', REFERENCE, readReference)
  return markdown
}

export function referenceOf(token: Token): Reference {
  return token.meta?.['reference'] as Reference // as `addToken` sets it
}

/** Parses the blocks of a text. */
export function parseBlocks(markdown: MarkdownIt, text: string, env: Env = {}): Token[] {
  return markdown.parse(text, env)
}

type FoundReference = TextRange & Reference

const foundIn = new WeakMap<StateInline, ReadonlyMap<number, FoundReference>>()

/** A rule of markdown-it. Other rules skip letters, so `diaspora://` is found at its colon, and its scheme is removed again. */
function readReference(state: StateInline, isSilent: boolean): boolean {
  const character = state.src[state.pos]
  if (character !== '@' && character !== '#' && character !== ':') return false
  const cachedReferences = foundIn.get(state) ?? findReferences(state.src)
  foundIn.set(state, cachedReferences)
  const reference = cachedReferences.get(state.pos)
  if (reference === undefined || reference.end > state.posMax) return false
  if (!isSilent) {
    const scheme = state.src.slice(reference.start, state.pos)
    if (!state.pending.endsWith(scheme)) return false
    state.pending = state.pending.slice(0, state.pending.length - scheme.length)
    addToken(state, reference)
  }
  state.pos = reference.end
  return true
}

function addToken(state: StateInline, reference: FoundReference): void {
  const token = state.push(REFERENCE, '', 0)
  token.meta = { reference }
  token.content = state.src.slice(reference.start, reference.end)
  token.hidden = state.linkLevel > 0 // a link inside of a link would end it
}

/** References by the position at which the rule finds them. */
function findReferences(text: string): ReadonlyMap<number, FoundReference> {
  const references = new Map<number, FoundReference>()
  for (const { start, end } of findTags(text))
    references.set(start, { type: 'tag', text: text.slice(start, end), start, end })
  for (const { start, end, ...link } of findLinks(text)) {
    references.set(text.indexOf(':', start), { type: 'entity', link, text: text.slice(start, end), start, end })
  }
  for (const { start, end, ...mention } of findMentions(text))
    references.set(start, { type: 'mention', mention, start, end })
  return references
}
