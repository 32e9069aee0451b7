import type { Env, RendererRule, Token } from 'markdown-it'
import { PUBLIC_POST_LIMITS } from '../../persistence/posts/limits.js'
import { isUrl } from '../../protocol/is-url.js'
import type { EntityLink, Mention } from '../../protocol/mentions.js'
import { escapeHtml } from '../pages/html.js'
import { createMarkdown, parseBlocks, REFERENCE, type Reference, referenceOf } from './markdown.js'

/** The people and posts that a text names. Undefined: unknown to this pod. */
export interface Names {
  personOf(mention: Mention): { readonly path: string; readonly name: string } | undefined
  entityOf(link: EntityLink): { readonly path: string } | undefined
}

const MAX_URL_CHARACTERS = 2_048
/** A text may use one long address of a reference (`[1]: https://…`) thousands of times. */
const MAX_CHARACTERS_OF_URLS = 600_000

/** The text of a person as HTML; HTML in it stays text. Its headings begin at `topLevel` and skip no level. */
export function writeHtml(text: string, names: Names, topLevel = 2): string {
  const rendering: Rendering = { names, charactersOfUrls: 0, openLinks: [] }
  const tokens = parseBlocks(markdown, text)
  setHeadingLevels(tokens, topLevel)
  return markdown.renderer.render(tokens, markdown.options, { rendering }).trimEnd()
}

/** The beginning of a text as HTML, with dots if it continues. */
export function writeExcerpt(
  text: string,
  names: Names,
  topLevel?: number,
): { readonly html: string; readonly complete: boolean } {
  const isComplete = text.length <= PUBLIC_POST_LIMITS.excerptCharacters
  return {
    html: writeHtml(
      isComplete ? text : `${text.slice(0, PUBLIC_POST_LIMITS.excerptCharacters).trimEnd()} …`,
      names,
      topLevel,
    ),
    complete: isComplete,
  }
}

interface Rendering {
  readonly names: Names
  charactersOfUrls: number
  /** Whether each open link was written. */
  readonly openLinks: boolean[]
}

const markdown = createMarkdown((url) => url.length <= MAX_URL_CHARACTERS && /^https?:\/\//i.test(url) && isUrl(url))

function setHeadingLevels(tokens: readonly Token[], topLevel: number): void {
  let last = topLevel - 1
  for (const token of tokens) {
    if (token.type === 'heading_open') last = Math.min(Number(token.tag.slice(1)) + topLevel - 1, last + 1, 6)
    if (token.type === 'heading_open' || token.type === 'heading_close') token.tag = `h${last}`
  }
}

/** A text may mix languages, so each block has its own direction. */
function withDirection(tag: string): RendererRule {
  return (tokens, index) => {
    const token = tokens[index]
    return token?.hidden === true ? '' : `<${tag || token?.tag} dir="auto">`
  }
}

function codeBlock(tokens: Token[], index: number): string {
  const text = tokens[index]?.content ?? ''
  return `<pre dir="ltr"><code>${escapeHtml(text.replace(/\n$/, ''))}</code></pre>\n`
}

const RULES: Readonly<Record<string, RendererRule>> = {
  paragraph_open: withDirection('p'),
  heading_open: withDirection(''),
  list_item_open: withDirection('li'),
  th_open: withDirection('th'),
  td_open: withDirection('td'),
  ordered_list_open: () => '<ol>\n',
  hr: () => '<hr>\n',
  hardbreak: () => '<br>\n',
  softbreak: () => '<br>\n',
  code_inline: (tokens, index) => `<code>${escapeHtml(tokens[index]?.content ?? '')}</code>`,
  text: (tokens, index) => escapeHtml(tokens[index]?.content ?? ''),
  fence: codeBlock,
  code_block: codeBlock,
  link_open(tokens, index, _options, env) {
    const rendering = renderingOf(env)
    const url = urlOf(tokens[index], 'href')
    const isWritten = countUrl(rendering, url)
    rendering.openLinks.push(isWritten)
    return isWritten ? linkStart(url) : ''
  },
  link_close: (_tokens, _index, _options, env) => (renderingOf(env).openLinks.pop() ? '</a>' : ''),
  // Loading a picture would report each reader of the page to a third server.
  image(tokens, index, _options, env) {
    const rendering = renderingOf(env)
    const token = tokens[index]
    const url = urlOf(token, 'src')
    const alt = (token?.children ?? []).map(altText).join('').trim()
    const label = `🖼 ${escapeHtml(alt === '' ? url : alt)}`
    const isLinked = rendering.openLinks.length > 0 || !countUrl(rendering, url)
    return isLinked ? label : `${linkStart(url)}${label}</a>`
  },
  [REFERENCE](tokens, index, _options, env) {
    const token = tokens[index]
    if (token === undefined) return ''
    const reference = referenceOf(token)
    return token.hidden ? escapeHtml(textOf(reference)) : referenceHtml(reference, renderingOf(env).names)
  },
}
Object.assign(markdown.renderer.rules, RULES)

function renderingOf(env: Env | undefined): Rendering {
  return env?.['rendering'] as Rendering // as `writeHtml` sets it
}

function urlOf(token: Token | undefined, attribute: 'href' | 'src'): string {
  return String(token?.attrGet(attribute) ?? '')
}

function altText(token: Token): string {
  if (token.type === 'softbreak' || token.type === 'hardbreak') return ' '
  return token.type === REFERENCE ? textOf(referenceOf(token)) : token.content
}

/** False: there is no address, as in `[text]()`, or the text has used too many. */
function countUrl(rendering: Rendering, url: string): boolean {
  if (url === '') return false
  rendering.charactersOfUrls += url.length
  return rendering.charactersOfUrls <= MAX_CHARACTERS_OF_URLS
}

function linkStart(url: string): string {
  return `<a href="${escapeHtml(url)}" rel="nofollow ugc noopener">`
}

function referenceHtml(reference: Reference, names: Names): string {
  const text = escapeHtml(textOf(reference))
  switch (reference.type) {
    case 'tag':
      return `<a class="tag" href="${escapeHtml(tagPath(reference.text))}"><bdi>${text}</bdi></a>`
    case 'mention': {
      const person = names.personOf(reference.mention)
      if (person === undefined) return `<bdi>@${text}</bdi>`
      return `<a href="${escapeHtml(person.path)}"><bdi>@${escapeHtml(person.name)}</bdi></a>`
    }
    case 'entity': {
      const entity = names.entityOf(reference.link)
      return entity === undefined ? text : `<a href="${escapeHtml(entity.path)}">${text}</a>`
    }
  }
}

/** The path of the page of a tag, which may begin with #. */
export function tagPath(tag: string): string {
  return `/tags/${encodeURIComponent(tag.replace(/^#/, '').toLowerCase())}`
}

function textOf(reference: Reference): string {
  if (reference.type !== 'mention') return reference.text
  return reference.mention.name ?? reference.mention.address
}
