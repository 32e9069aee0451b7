import { LOOKUP_LIMITS, TEXT_LIMITS } from '../../limits.js'
import { readMentions, readTags } from '../../protocol/mentions.js'
import { fits } from '../../protocol/values.js'
import { isCleanText } from '../../protocol/xml/xml.js'

/** Why a text cannot be stored and sent as it is; undefined: it can. */
export function findTextFault(text: string, longest: number = TEXT_LIMITS.textCharacters): string | undefined {
  if (!fits(text, longest)) return `is longer than ${longest} characters`
  // Other pods would see another text than the one that is stored here, and no signature over it would fit.
  return isCleanText(text) ? undefined : 'holds characters that no pod can pass on'
}

/** Addresses, each once, and no more of them than are kept with a text. */
export function readMentionedAddresses(text: string): string[] {
  const addresses = new Set(readMentions(text).map(({ address }) => address))
  return [...addresses].slice(0, LOOKUP_LIMITS.mentionsOfText)
}

/** The same of tags. */
export function readTagNames(text: string): string[] {
  return readTags(text).slice(0, LOOKUP_LIMITS.tagsOfText)
}
