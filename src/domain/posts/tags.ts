import { TEXT_LIMITS } from '../../limits.js'
import { listTagNames } from '../../persistence/posts/list-tags.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import { TAG_CHARACTERS } from '../../protocol/mentions.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'
import { findTextFault } from './texts.js'

type TagRefusal = 'tag_invalid'

const NON_TAG_CHARACTERS = new RegExp(`[^${TAG_CHARACTERS}]`, 'gu')

/** What somebody has typed, as tags are stored; empty: nothing of it can be part of a tag. */
export function normaliseTagName(text: string): string {
  const name = text.replace(/^#/, '')
  if (name === '<3') return name
  return name.replace(NON_TAG_CHARACTERS, '').toLowerCase()
}

/** The same where nothing will not do. */
export function requireTagName(text: string): string {
  const name = normaliseTagName(text)
  const fault = name === '' ? 'has no letter or digit' : findTextFault(name, TEXT_LIMITS.tagCharacters)
  if (fault === undefined) return name
  throw new Refusal<TagRefusal>('tag_invalid', `The tag ${fault}.`)
}

/** Undefined: no tag is as long as this one. */
export function normaliseSearchedTag(text: string): string | undefined {
  return [...normaliseTagName(text)].length > TEXT_LIMITS.tagCharacters ? undefined : requireTagName(text)
}

/** Names of tags that begin with a text. A tag that stands only in private posts of others is not found. */
export async function findTags(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  text: string,
  page: OffsetPage,
): Promise<Page<string>> {
  const beginning = normaliseSearchedTag(text)
  return beginning === undefined ? { items: [], more: false } : listTagNames(pod.db, viewer, beginning, page)
}
