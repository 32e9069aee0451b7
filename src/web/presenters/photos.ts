import type { Static } from 'typebox'
import { isPicture, PHOTO_SIZES, photoFolder } from '../../domain/photos.js'
import type { ListedPhoto } from '../../persistence/listed-photos.js'
import type { Photo as StoredPhoto } from '../../persistence/models/photo.js'
import type { Photo, Picture } from '../post-schemas.js'

export type PhotoFacts = Pick<StoredPhoto, 'name' | 'remotePath' | 'height' | 'width'>

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
  if (!isPicture(photo)) return undefined
  const folder = photoFolder(photo, podUrl)
  const address = (size: keyof typeof PHOTO_SIZES) => `${folder}${PHOTO_SIZES[size]}${photo.name}`
  if (!URL.canParse(address('raw'))) return undefined
  const sizeAt = (size: keyof typeof PHOTO_SIZES) => new URL(address(size)).href
  return {
    dimensions: { height: photo.height, width: photo.width },
    sizes: { raw: sizeAt('raw'), large: sizeAt('large'), medium: sizeAt('medium'), small: sizeAt('small') },
  }
}
