import { UPLOADS_PATH } from '../../domain/photos/photos.js'
import type { Person } from '../../persistence/models/person.js'
import { isUrl } from '../../protocol/is-url.js'
import { DEFAULT_AVATAR_PATH, presentName } from '../presenters/people.js'
import type { PodAddresses } from '../presenters/picture-urls.js'
import { escapeHtml } from './html.js'

type Named = Pick<Person, 'guid' | 'address' | 'name' | 'podId' | 'avatarUrl'>

/** The picture of a person if this pod serves it, else their initial: no other server learns who reads a page. */
export function avatarHtml(person: Named, services: PodAddresses, size: 'small' | 'large' = 'small'): string {
  const css = size === 'large' ? 'face large' : 'face'
  const url = person.podId === null ? (person.avatarUrl ?? DEFAULT_AVATAR_PATH) : person.avatarUrl
  const source = ownPictureSource(url, services)
  if (source !== undefined) return `<img class="${css}" src="${escapeHtml(source)}" alt="">`
  const [letter = ''] = presentName(person)
  return `<span class="${css}" aria-hidden="true">${escapeHtml(letter)}</span>`
}

export function personLink(person: Named): string {
  return `<b><a href="/people/${escapeHtml(person.guid)}"><bdi>${escapeHtml(presentName(person))}</bdi></a></b>`
}

/** Where a page loads a picture of this pod from: a path, or the address of UPLOADS_BASE_URL. */
export function ownPictureSource(
  url: string | null,
  { url: podUrl, uploadsBaseUrl }: PodAddresses,
): string | undefined {
  const path = ownPath(url, podUrl)
  if (path === undefined || uploadsBaseUrl === undefined || !path.startsWith(UPLOADS_PATH)) return path
  return `${uploadsBaseUrl}${path.slice(UPLOADS_PATH.length)}`
}

/** The path of a URL on this pod. Pages may load only resources of the same origin. */
export function ownPath(url: string | null, podUrl: string): string | undefined {
  if (url === null || !isUrl(url, podUrl)) return undefined
  const { origin, pathname } = new URL(url, podUrl)
  return origin === podUrl ? pathname : undefined
}
