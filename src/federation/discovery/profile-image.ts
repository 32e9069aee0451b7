import { LOOKUP_LIMITS } from '../../limits.js'
import { isUrl } from '../../protocol/is-url.js'

/** Where a picture of a profile lies; null: there is none, or none that anybody could be shown. */
export function profileImageUrl(text: string, podUrl: string): string | null {
  if (!isUrl(text, podUrl)) return null
  const url = new URL(text, podUrl)
  const isShown = ['http:', 'https:'].includes(url.protocol) && url.href.length <= LOOKUP_LIMITS.urlCharacters
  // What other pods show for people without a picture is no picture of these people.
  return isShown && !url.pathname.includes('user/default') ? url.href : null
}
