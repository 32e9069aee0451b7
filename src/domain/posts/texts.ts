import { readMentions, readTags } from '../../protocol/mentions.js'
import { isWithinLength } from '../../protocol/values.js'
import { isCleanText } from '../../protocol/xml/xml.js'
import { TEXT_LIMITS } from '../limits.js'

/** Why a text cannot be stored and sent unchanged; undefined if it can. */
export function findTextFault(text: string, maxCharacters: number = TEXT_LIMITS.textCharacters): string | undefined {
  if (!isWithinLength(text, maxCharacters)) return `is longer than ${maxCharacters} characters`
  // XML would change these characters: other pods would read another text, and its signature would be invalid.
  return isCleanText(text) ? undefined : 'holds characters that no pod can pass on'
}

/** Addresses of the mentioned people, without repeats, up to the limit of a text. */
export function readMentionedAddresses(text: string): string[] {
  const addresses = new Set(readMentions(text).map(({ address }) => address))
  return [...addresses].slice(0, TEXT_LIMITS.mentionsOfText)
}

/** Tags of a text, up to the limit. */
export function readTagNames(text: string): string[] {
  return readTags(text).slice(0, TEXT_LIMITS.tagsOfText)
}
