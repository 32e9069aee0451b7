import type { FilterKind } from '../../../persistence/moderation/filters.js'
import { Refusal } from '../../refusals.js'
import { MODERATION_LIMITS } from '../limits.js'
import { isWordCharacter, normalForm } from './normal-form.js'
import { readHost } from './web-links.js'

/** The value of a filter in the form in which it is compared. Throws for a value that its kind does not accept. */
export function readFilterValue(kind: FilterKind, given: string): string {
  const text = normalForm(given).trim()
  if (text === '' || text.length > MODERATION_LIMITS.filterCharacters) {
    throw invalidValue(`The value of a filter must have 1 to ${MODERATION_LIMITS.filterCharacters} characters.`)
  }
  return readers[kind](text)
}

const readers: Readonly<Record<FilterKind, (text: string) => string>> = {
  phrase: (text) => text,

  word(text) {
    if (text.includes(' ')) throw invalidValue('A word has no spaces. Use a phrase for several words.')
    return text
  },

  pattern(text) {
    const pieces = text.split('*')
    const isWord = pieces.every((piece) => Array.from(piece).every((_, index) => isWordCharacter(piece, index)))
    if (!isWord || pieces.length === 1) throw invalidValue('A pattern is one word with at least one *.')
    if (findLongestPiece(text).length < MODERATION_LIMITS.patternPieceCharacters) {
      throw invalidValue(`A pattern has ${MODERATION_LIMITS.patternPieceCharacters} characters in a row without *.`)
    }
    return text
  },

  link_host(text) {
    const name = text
      .replace(/^https?:\/\//, '')
      .replace(/^\*\./, '')
      .replace(/\/$/, '')
    const host = readHost(name)
    if (host === undefined || /[\s/?#]/.test(name)) throw invalidValue('The value is not the name of a host.')
    return host
  },

  link_prefix(text) {
    const [, authority = '', rest = ''] = /^(?:https?:\/\/)?([^/?#]*)(.*)$/.exec(text) ?? []
    const host = readHost(authority)
    if (host === undefined) throw invalidValue('The value does not begin with the name of a host.')
    return `${host}${rest}`
  },

  tag(text) {
    const name = text.replace(/^#/, '')
    if (name === '' || name.includes(' ')) throw invalidValue('The value is not a tag.')
    return name
  },
}

/** The longest part of a pattern without `*`. */
export function findLongestPiece(pattern: string): string {
  return pattern.split('*').reduce((longest, piece) => (piece.length > longest.length ? piece : longest))
}

function invalidValue(message: string): Refusal {
  return new Refusal('filter_invalid', message)
}
