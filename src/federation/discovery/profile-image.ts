import { isUrl } from '../../protocol/is-url.js'
import { DISCOVERY_LIMITS } from './limits.js'

/** The absolute URL of a profile picture; null: there is none, or browsers cannot load it. */
export function profileImageUrl(text: string, podUrl: string): string | null {
  if (!isUrl(text, podUrl)) return null
  const url = new URL(text, podUrl)
  const isLoadable = ['http:', 'https:'].includes(url.protocol) && url.href.length <= DISCOVERY_LIMITS.urlCharacters
  // The default picture of other pods is not a picture of the person.
  return isLoadable && !url.pathname.includes('user/default') ? url.href : null
}
