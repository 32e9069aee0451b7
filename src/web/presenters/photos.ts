import type { Static } from 'typebox'
import { hasWebUrl, PHOTO_SIZE_PREFIXES } from '../../domain/photos/photos.js'
import type { Photo as StoredPhoto } from '../../persistence/models/photo.js'
import type { ListedPhoto } from '../../persistence/photos/list-photos.js'
import { isUrl } from '../../protocol/is-url.js'
import type { Photo, Picture } from '../schemas/posts.js'
import { ownPicturesUrl, type PodAddresses } from './picture-urls.js'

export type PresentablePhoto = Pick<StoredPhoto, 'name' | 'remotePath' | 'height' | 'width' | 'text'>

/** Undefined: the URL that the other pod sent is invalid. */
export function presentPhoto(photo: ListedPhoto, addresses: PodAddresses): Static<typeof Photo> | undefined {
  const picture = presentPicture(photo, addresses)
  if (picture === undefined) return undefined
  const { guid, createdAt, postGuid } = photo
  const fields = Object.assign({ guid, created_at: createdAt.toISOString() }, picture)
  return postGuid === null ? fields : Object.assign(fields, { post: postGuid })
}

/** A photo as part of a post. Undefined: the URL is invalid. */
export function presentPicture(photo: PresentablePhoto, addresses: PodAddresses): Static<typeof Picture> | undefined {
  if (!hasWebUrl(photo)) return undefined
  const urlOf = urlOfSizes(photo, addresses)
  const [raw, large, medium, small] = [urlOf('raw'), urlOf('large'), urlOf('medium'), urlOf('small')]
  if (raw === undefined || large === undefined || medium === undefined || small === undefined) return undefined
  const picture: Static<typeof Picture> = {
    dimensions: { height: photo.height, width: photo.width },
    sizes: { raw, large, medium, small },
  }
  if (photo.text !== null && photo.text.trim() !== '') picture.alt_text = photo.text
  return picture
}

/** A name that needs no encoding in a URL and does not begin with a dot. */
const PLAIN_NAME = /^[\w-][\w.-]*$/

/** Builds the URLs of the sizes. For a plain name the URL of the folder is parsed once, else the URL of each size. */
function urlOfSizes(
  photo: PresentablePhoto,
  addresses: PodAddresses,
): (size: keyof typeof PHOTO_SIZE_PREFIXES) => string | undefined {
  const { name } = photo
  const folder = photo.remotePath ?? ownPicturesUrl(addresses)
  const folderUrl = folder.endsWith('/') && PLAIN_NAME.test(name) ? normaliseUrl(folder) : undefined
  return (size) =>
    folderUrl === undefined
      ? normaliseUrl(`${folder}${PHOTO_SIZE_PREFIXES[size]}${name}`)
      : `${folderUrl}${PHOTO_SIZE_PREFIXES[size]}${name}`
}

function normaliseUrl(text: string): string | undefined {
  return isUrl(text) ? new URL(text).href : undefined
}
