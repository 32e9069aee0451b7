import { PHOTO_LIMITS } from '../../limits.js'
import type { Photo } from '../../persistence/models/photo.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'

/** What is in front of the name of a picture; other pods and clients build the addresses of all sizes themselves. */
export const PHOTO_SIZE_PREFIXES = {
  raw: '',
  large: 'scaled_full_',
  medium: 'thumb_medium_',
  small: 'thumb_small_',
} as const

/** The large one of a profile. */
export const PROFILE_PICTURE_PREFIX = 'thumb_large_'

export type SizePrefix = (typeof PHOTO_SIZE_PREFIXES)[keyof typeof PHOTO_SIZE_PREFIXES] | typeof PROFILE_PICTURE_PREFIX

const PREFIXES: readonly SizePrefix[] = [...Object.values(PHOTO_SIZE_PREFIXES), PROFILE_PICTURE_PREFIX]

/** All files of a photo that lies here. */
export function listPhotoFiles(name: string): readonly string[] {
  return PREFIXES.map((prefix) => `${prefix}${name}`)
}

export const UPLOADS_PATH = '/uploads/images/'

/** Other pods may name anything as the place of a picture; what is not on the web is none. */
export function hasWebUrl({ remotePath }: Pick<Photo, 'remotePath'>): boolean {
  return remotePath === null || /^https?:\/\//i.test(remotePath)
}

/** The address that becomes a picture with a prefix and its name; ends in a slash. */
export function photoBaseUrl({ remotePath }: Pick<Photo, 'remotePath'>, podUrl: string): string {
  return remotePath ?? `${podUrl}${UPLOADS_PATH}`
}

/** The description of a photo as it is stored; null: a blank one is none. Throws what is wrong with it. */
export function readAltText(text: string | null): string | null {
  const altText = text?.trim() ?? ''
  const fault = findTextFault(altText, PHOTO_LIMITS.altTextCharacters)
  if (fault !== undefined) throw new Refusal<AltTextRefusal>('alt_text_invalid', `The alt text ${fault}.`)
  return altText === '' ? null : altText
}

type AltTextRefusal = 'alt_text_invalid'
