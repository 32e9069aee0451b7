import type { Photo } from '../../persistence/models/photo.js'
import { ALT_TEXT_LIMITS } from '../../persistence/photos/limits.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'

/** Prefixes of file names by size. Other pods and clients build the URLs of all sizes from them. */
export const PHOTO_SIZE_PREFIXES = {
  raw: '',
  large: 'scaled_full_',
  medium: 'thumb_medium_',
  small: 'thumb_small_',
} as const

/** Prefix of the large size of profile pictures. */
export const PROFILE_PICTURE_PREFIX = 'thumb_large_'

export type SizePrefix = (typeof PHOTO_SIZE_PREFIXES)[keyof typeof PHOTO_SIZE_PREFIXES] | typeof PROFILE_PICTURE_PREFIX

const PREFIXES: readonly SizePrefix[] = [...Object.values(PHOTO_SIZE_PREFIXES), PROFILE_PICTURE_PREFIX]

/** File names of all sizes of a local photo. */
export function listPhotoFiles(name: string): readonly string[] {
  return PREFIXES.map((prefix) => `${prefix}${name}`)
}

/** The name of the original of which this file is another size; undefined: the name has no prefix of a size. */
export function originalOf(fileName: string): string | undefined {
  const prefix = PREFIXES.find((one) => one !== '' && fileName.startsWith(one))
  return prefix === undefined ? undefined : fileName.slice(prefix.length)
}

export const UPLOADS_PATH = '/uploads/images/'

/** True for local photos and for remote photos with an HTTP URL. Other pods can send any text as the path. */
export function hasWebUrl({ remotePath }: Pick<Photo, 'remotePath'>): boolean {
  return remotePath === null || /^https?:\/\//i.test(remotePath)
}

/** The URL to which size prefix and file name are appended; ends in a slash. */
export function photoBaseUrl({ remotePath }: Pick<Photo, 'remotePath'>, podUrl: string): string {
  return remotePath ?? `${podUrl}${UPLOADS_PATH}`
}

/** The description of a photo as it is stored; null for a blank one. Throws a refusal for an invalid one. */
export function readAltText(text: string | null): string | null {
  const altText = text?.trim() ?? ''
  const fault = findTextFault(altText, ALT_TEXT_LIMITS.altTextCharacters)
  if (fault !== undefined) throw new Refusal('alt_text_invalid', `The alt text ${fault}.`)
  return altText === '' ? null : altText
}
