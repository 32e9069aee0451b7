import { isUrl } from '../../../protocol/is-url.js'
import { DISCOVERY_LIMITS } from '../../discovery/limits.js'

/** True for an absolute http or https URL of limited length. Photo names are appended to it, and browsers load the result. */
export function isWebUrl(path: string): boolean {
  return isUrl(path) && /^https?:\/\//i.test(path) && path.length <= DISCOVERY_LIMITS.urlCharacters
}

/** The side of a picture in pixels; undefined for an impossible value. */
export function validPixels(side: number | undefined): number | undefined {
  return side !== undefined && side >= 1 && side <= MAX_SIDE ? side : undefined
}

const MAX_SIDE = 100_000
