import { TEXT_LIMITS } from '../../limits.js'
import { listedTags } from '../../persistence/posts/list-tags.js'
import type { IndexPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import { TAG_CHARACTERS } from '../../protocol/mentions.js'
import type { Viewer } from '../accounts/access.js'
import { Refusal } from '../refusals.js'
import { faultOfText } from './texts.js'

type TagRefusal = 'tag_invalid'

const NO_PART_OF_TAG = new RegExp(`[^${TAG_CHARACTERS}]`, 'gu')

/** What somebody has typed, as tags are stored; empty: nothing of it can be part of a tag. */
export function tagNameOf(text: string): string {
  const name = text.replace(/^#/, '')
  if (name === '<3') return name
  return name.replace(NO_PART_OF_TAG, '').toLowerCase()
}

/** The same where nothing will not do. */
export function requireTagName(text: string): string {
  const name = tagNameOf(text)
  const fault = name === '' ? 'has no letter or digit' : faultOfText(name, TEXT_LIMITS.tagCharacters)
  if (fault === undefined) return name
  throw new Refusal<TagRefusal>('tag_invalid', `The tag ${fault}.`)
}

/** Undefined: no tag is as long as this one. */
export function soughtTagName(text: string): string | undefined {
  return [...tagNameOf(text)].length > TEXT_LIMITS.tagCharacters ? undefined : requireTagName(text)
}

/** Names of tags that begin with a text. A tag that stands only in private posts of others is not found. */
export async function findTags(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  text: string,
  page: IndexPage,
): Promise<Page<string>> {
  const beginning = soughtTagName(text)
  return beginning === undefined ? { items: [], more: false } : listedTags(pod.db, viewer, beginning, page)
}
