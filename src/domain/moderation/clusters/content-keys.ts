import { createHash } from 'node:crypto'
import { findMentions } from '../../../protocol/mentions.js'
import { normalForm } from '../filters/normal-form.js'
import { shownText } from '../filters/shown-text.js'
import { readWebLinks, withoutTrailing } from '../filters/web-links.js'
import { MODERATION_LIMITS } from '../limits.js'

type ContentKeyKind = 'text' | 'link' | 'mentions' | 'photo'

/** Something that content has in common with other content of the same wave. */
export interface ContentKey {
  readonly kind: ContentKeyKind
  /** `kind:` and the value or its hash. */
  readonly key: string
  /** The text for moderators: a link or photo address, or the beginning of the text. */
  readonly label: string
}

const HASH_BYTES = 16

/** The keys of a post or comment. Links to the own pod are not keys: they are common. */
export function buildContentKeys(
  { text, photos }: { readonly text: string; readonly photos: readonly string[] },
  ownHost: string,
): readonly ContentKey[] {
  const mentionedAddresses = [...new Set(findMentions(text).map(({ address }) => address))].sort()
  const keys = [
    ...textKeys(text),
    ...linksIn(text, ownHost).map((link) => keyOf('link', link)),
    ...(mentionedAddresses.length >= 3 ? [keyOf('mentions', mentionedAddresses.join(' '))] : []),
    ...photos.slice(0, MODERATION_LIMITS.keysOfContent).map((address) => keyOf('photo', address)),
  ]
  return [...new Map(keys.map((key) => [key.key, key])).values()]
}

/** The first links to other pods, without what follows the `?`. */
function linksIn(text: string, ownHost: string): readonly string[] {
  const links = new Set<string>()
  for (const { host, rest } of readWebLinks(normalForm(shownText(text)))) {
    if (links.size === MODERATION_LIMITS.keysOfContent) break
    if (host !== ownHost) links.add(`${host}${withoutTrailing(rest.replace(/[?#].*$/, ''), '/.,;:!')}`)
  }
  return [...links]
}

/** Copies of a text differ in whom they mention, in numbers, and in what follows the `?` of a link. */
function textKeys(text: string): readonly ContentKey[] {
  const plain = normalForm(shownText(withoutMentions(text)))
    .replace(/\?[^\s<>"'()[\]{}|`]*/g, '')
    .replace(/[\p{N}]+/gu, '')
    .replace(/\s+/g, ' ')
    .trim()
  if ([...plain.slice(0, 40)].length < MODERATION_LIMITS.clusterTextCharacters) return []
  return [{ kind: 'text', key: `text:${hashOf(plain)}`, label: text.slice(0, MODERATION_LIMITS.excerptCharacters) }]
}

function withoutMentions(text: string): string {
  let rest = ''
  let from = 0
  for (const { start, end } of findMentions(text)) {
    rest += text.slice(from, start)
    from = end
  }
  return rest + text.slice(from)
}

function keyOf(kind: ContentKeyKind, value: string): ContentKey {
  return { kind, key: `${kind}:${hashOf(value)}`, label: value.slice(0, MODERATION_LIMITS.excerptCharacters) }
}

function hashOf(value: string): string {
  return createHash('sha256').update(value).digest().subarray(0, HASH_BYTES).toString('base64url')
}
