import { LOOKUP_LIMITS } from '../../../limits.js'
import { isUrl } from '../../../protocol/is-url.js'

/** Other pods may name anything as the place of a picture, and it stands in front of a name wherever the picture is shown. */
export function isOnTheWeb(path: string): boolean {
  return isUrl(path) && /^https?:\/\//i.test(path) && path.length <= LOOKUP_LIMITS.urlCharacters
}

/** As large as a picture can be; anything else is no size. */
export function pixels(side: number | undefined): number | undefined {
  return side !== undefined && side >= 1 && side <= largestSide ? side : undefined
}

const largestSide = 100_000
