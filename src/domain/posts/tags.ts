import { listTagNames } from '../../persistence/posts/list-tags.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import { TAG_CHARACTERS } from '../../protocol/mentions.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { TEXT_LIMITS } from '../limits.js'
import { Refusal } from '../refusals.js'
import { findTextFault } from './texts.js'

const NON_TAG_CHARACTERS = new RegExp(`[^${TAG_CHARACTERS}]`, 'gu')

/** Converts typed text to the stored form of a tag. Empty: the text has no character that a tag can contain. */
export function normaliseTagName(text: string): string {
  const name = text.replace(/^#/, '')
  if (name === '<3') return name
  return name.replace(NON_TAG_CHARACTERS, '').toLowerCase()
}

/** Normalises a tag as `normaliseTagName` does; throws a `Refusal` for an empty or too long one. */
export function requireTagName(text: string): string {
  const name = normaliseTagName(text)
  const fault = name === '' ? 'has no letter or digit' : findTextFault(name, TEXT_LIMITS.tagCharacters)
  if (fault === undefined) return name
  throw new Refusal('tag_invalid', `The tag ${fault}.`)
}

/** Normalises the tag of a search. Undefined for texts that are longer than any tag. */
export function normaliseSearchedTag(text: string): string | undefined {
  return [...normaliseTagName(text)].length > TEXT_LIMITS.tagCharacters ? undefined : requireTagName(text)
}

/** Finds tag names by prefix. Tags that occur only in other people's private posts are not found. */
export async function findTags(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  text: string,
  page: OffsetPage,
): Promise<Page<string>> {
  const beginning = normaliseSearchedTag(text)
  return beginning === undefined ? { items: [], hasMore: false } : listTagNames(services.db, viewer, beginning, page)
}
