import type { Config } from '../../config/config.js'
import { UPLOADS_PATH } from '../../domain/photos/photos.js'
import { isUrl } from '../../protocol/is-url.js'

/** The address of the pod, and the one from which clients and pages load its pictures if that is another one. */
export type PodAddresses = Pick<Config, 'url' | 'uploadsBaseUrl'>

/** The folder URL of the pictures of this pod; ends in a slash. */
export function ownPicturesUrl({ url, uploadsBaseUrl }: PodAddresses): string {
  return uploadsBaseUrl ?? `${url}${UPLOADS_PATH}`
}

/** The URL of a picture; undefined unless it is http(s). Remote pods may send any text. */
export function pictureUrl(text: string | null, addresses: PodAddresses): string | undefined {
  if (text === null || text.trim() === '' || !isUrl(text, addresses.url)) return undefined
  const { protocol, href } = new URL(text, addresses.url)
  return protocol === 'https:' || protocol === 'http:' ? shownPictureUrl(href, addresses) : undefined
}

/** Stored URLs of own pictures name the pod, because other pods keep them. */
function shownPictureUrl(href: string, { url, uploadsBaseUrl }: PodAddresses): string {
  const ownPrefix = `${url}${UPLOADS_PATH}`
  if (uploadsBaseUrl === undefined || !href.startsWith(ownPrefix)) return href
  return `${uploadsBaseUrl}${href.slice(ownPrefix.length)}`
}
