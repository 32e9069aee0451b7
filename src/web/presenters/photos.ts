import type { Static } from 'typebox'
import { hasWebUrl, PHOTO_SIZE_PREFIXES, photoBaseUrl } from '../../domain/photos/photos.js'
import type { Photo as StoredPhoto } from '../../persistence/models/photo.js'
import type { ListedPhoto } from '../../persistence/photos/list-photos.js'
import { isUrl } from '../../protocol/is-url.js'
import type { Photo, Picture } from '../schemas/posts.js'

export type PhotoFacts = Pick<StoredPhoto, 'name' | 'remotePath' | 'height' | 'width' | 'text'>

/** Undefined: what another pod says about the place of it is no address. */
export function presentPhoto(photo: ListedPhoto, podUrl: string): Static<typeof Photo> | undefined {
  const picture = presentPicture(photo, podUrl)
  if (picture === undefined) return undefined
  const { guid, createdAt, postGuid } = photo
  const presented = Object.assign({ guid, created_at: createdAt.toISOString() }, picture)
  return postGuid === null ? presented : Object.assign(presented, { post: postGuid })
}

/** A photo as part of a post; undefined as above. */
export function presentPicture(photo: PhotoFacts, podUrl: string): Static<typeof Picture> | undefined {
  if (!hasWebUrl(photo)) return undefined
  const addressAt = addressesOf(photo, podUrl)
  const [raw, large, medium, small] = [addressAt('raw'), addressAt('large'), addressAt('medium'), addressAt('small')]
  if (raw === undefined || large === undefined || medium === undefined || small === undefined) return undefined
  const picture: Static<typeof Picture> = {
    dimensions: { height: photo.height, width: photo.width },
    sizes: { raw, large, medium, small },
  }
  if (photo.text !== null && photo.text.trim() !== '') picture.alt_text = photo.text
  return picture
}

/** Begins with no dot, and has nothing that an address would write in another way. */
const PLAIN_NAME = /^[\w-][\w.-]*$/

/** The address of a folder is that of all that lies in it, so that only one is read; else each is. */
function addressesOf(
  photo: PhotoFacts,
  podUrl: string,
): (size: keyof typeof PHOTO_SIZE_PREFIXES) => string | undefined {
  const { name } = photo
  const folder = photoBaseUrl(photo, podUrl)
  const address = folder.endsWith('/') && PLAIN_NAME.test(name) ? addressOf(folder) : undefined
  return (size) =>
    address === undefined
      ? addressOf(`${folder}${PHOTO_SIZE_PREFIXES[size]}${name}`)
      : `${address}${PHOTO_SIZE_PREFIXES[size]}${name}`
}

function addressOf(text: string): string | undefined {
  return isUrl(text) ? new URL(text).href : undefined
}
