import { SERVE_LIMITS } from '../../limits.js'
import type { EntityLink, Mention } from '../../protocol/mentions.js'
import { escapeHtml } from '../pages/html.js'
import type { Inline } from './read-inline.js'
import { type Block, readText } from './read-text.js'

/** What the names in a text stand for; undefined: nothing that is known here. */
export interface Names {
  personOf(mention: Mention): { readonly path: string; readonly name: string } | undefined
  entityOf(link: EntityLink): { readonly path: string } | undefined
}

/**
 * What somebody wrote, as HTML that is made here to the last sign: nothing of the text is markup. Its headings begin at a level and
 * skip none.
 */
export function writeHtml(text: string, names: Names, topLevel = 2): string {
  return withoutSkippedLevels(readText(text), topLevel)
    .map((block) => blockHtml(block, names))
    .join('\n')
}

function withoutSkippedLevels(blocks: readonly Block[], topLevel: number): readonly Block[] {
  let last = topLevel - 1
  const levelled = (block: Block): Block => {
    if (block.type === 'quote') return { ...block, blocks: block.blocks.map(levelled) }
    if (block.type !== 'heading') return block
    last = Math.min(block.level + topLevel - 1, last + 1, 6)
    return { ...block, level: last }
  }
  return blocks.map(levelled)
}

/** The same of the beginning of a text, with dots where it goes on. */
export function writeExcerpt(
  text: string,
  names: Names,
  topLevel?: number,
): { readonly html: string; readonly complete: boolean } {
  const complete = text.length <= SERVE_LIMITS.excerptCharacters
  return {
    html: writeHtml(complete ? text : `${text.slice(0, SERVE_LIMITS.excerptCharacters).trimEnd()} …`, names, topLevel),
    complete,
  }
}

function blockHtml(block: Block, names: Names): string {
  switch (block.type) {
    case 'paragraph':
    case 'references':
      return `<p>${inlineHtml(block.content, names)}</p>`
    case 'heading':
      return `<h${block.level}>${inlineHtml(block.content, names)}</h${block.level}>`
    case 'code':
      return `<pre><code>${escapeHtml(block.text)}</code></pre>`
    case 'list': {
      const tag = block.ordered ? 'ol' : 'ul'
      return `<${tag}>${block.items.map((item) => `<li>${inlineHtml(item, names)}</li>`).join('')}</${tag}>`
    }
    case 'quote':
      return `<blockquote>${block.blocks.map((inner) => blockHtml(inner, names)).join('\n')}</blockquote>`
    case 'rule':
      return '<hr>'
  }
}

const tags = { strong: 'strong', emphasis: 'em', struck: 's' } as const

function inlineHtml(inlines: readonly Inline[], names: Names): string {
  return inlines.map((inline) => oneInline(inline, names)).join('')
}

function oneInline(inline: Inline, names: Names): string {
  switch (inline.type) {
    case 'text':
      return escapeHtml(inline.text)
    case 'break':
      return '<br>\n'
    case 'code':
      return `<code>${escapeHtml(inline.text)}</code>`
    case 'tag':
      return `<span class="tag">${escapeHtml(inline.text)}</span>`
    case 'strong':
    case 'emphasis':
    case 'struck':
      return `<${tags[inline.type]}>${inlineHtml(inline.content, names)}</${tags[inline.type]}>`
    case 'link':
      return outwards(inline.url, inlineHtml(inline.content, names))
    case 'unlinked':
      return `${inline.before}${inlineHtml(inline.content, names)}${inlineHtml(inline.behind, names)}`
    // Loading it would tell a third server who reads this page.
    case 'picture':
      return outwards(inline.url, `🖼 ${escapeHtml(inline.text)}`)
    case 'mention': {
      const person = names.personOf(inline.mention)
      if (person === undefined) return escapeHtml(`@${inline.mention.name ?? inline.mention.address}`)
      return `<a href="${escapeHtml(person.path)}">@${escapeHtml(person.name)}</a>`
    }
    case 'entity': {
      const entity = names.entityOf(inline.link)
      return entity ? `<a href="${escapeHtml(entity.path)}">${escapeHtml(inline.text)}</a>` : escapeHtml(inline.text)
    }
  }
}

function outwards(url: string, content: string): string {
  return `<a href="${escapeHtml(url)}" rel="nofollow ugc noopener">${content}</a>`
}
