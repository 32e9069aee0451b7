import { fits } from '../protocol/values.js'
import { isCleanText } from '../protocol/xml.js'

/** Of posts, comments and messages, in code points: what every pod of the network takes. */
const LONGEST_TEXT = 65_535

/** Why a text cannot be stored and sent as it is; undefined: it can. */
export function faultOfText(text: string, longest = LONGEST_TEXT): string | undefined {
  if (!fits(text, longest)) return `is longer than ${longest} characters`
  // Other pods would see another text than the one that is stored here, and no signature over it would fit.
  return isCleanText(text) ? undefined : 'holds characters that no pod can pass on'
}
