import type { FilterField, StoredFilter } from '../../../persistence/moderation/filters.js'
import { MODERATION_LIMITS } from '../limits.js'
import type { FilterDocument } from './filter-document.js'
import { findLongestPiece } from './filter-values.js'
import { compileLiterals } from './literal-automaton.js'
import { isWordCharacter, normalForm } from './normal-form.js'
import { shownText } from './shown-text.js'
import { readWebLinks, type WebLink } from './web-links.js'

/** A filter that a document matches, and the first field in which it does. */
export interface FilterMatch {
  readonly filter: StoredFilter
  readonly field: FilterField
}

export interface FilterMatcher {
  readonly size: number
  match(document: FilterDocument): readonly FilterMatch[]
}

/** Reports that a filter has matched the current text. */
type ReportMatch = (filter: StoredFilter) => void

/**
 * Compiles filters so that a text is read twice, as it was written and as it is shown, whatever their number: an automaton for words, phrases and patterns, and tables for
 * links and tags. No regular expression is made from a value, so that no value can make the search slow.
 */
export function compileFilters(filters: readonly StoredFilter[]): FilterMatcher {
  const findText = compileTexts(filters)
  const findLinks = compileLinks(filters)
  const tags = groupBy(filters, 'tag')
  const mayMatchPrivate = filters.some(({ isPrivate }) => isPrivate)

  return {
    size: filters.length,
    match({ texts, isPublic }) {
      if (filters.length === 0 || (!isPublic && !mayMatchPrivate)) return []
      const matches = new Map<StoredFilter, FilterField>()
      for (const { field, text } of texts) {
        const report: ReportMatch = (filter) => {
          if (matches.has(filter) || !filter.fields.includes(field) || !(isPublic || filter.isPrivate)) return
          matches.set(filter, field)
        }
        const normal = normalForm(text)
        findText(normal, report)
        findLinks(normal, report)
        const shown = shownText(text)
        if (shown !== text) {
          const normalShown = normalForm(shown)
          findText(normalShown, report)
          findLinks(normalShown, report)
        }
        if (field === 'tag') for (const filter of tags.get(normal) ?? []) report(filter)
      }
      return Array.from(matches, ([filter, field]) => ({ filter, field }))
    },
  }
}

function compileTexts(filters: readonly StoredFilter[]): (normal: string, report: ReportMatch) => void {
  const phrases = groupBy(filters, 'phrase')
  const words = groupBy(filters, 'word')
  const patterns = groupBy(filters, 'pattern', findLongestPiece)
  const search = compileLiterals([...phrases.keys(), ...words.keys(), ...patterns.keys()])

  return (normal, report) => {
    let comparisons = 0
    const comparedPairs = new Set<string>()
    search(normal, (literal, end) => {
      for (const filter of phrases.get(literal) ?? []) report(filter)
      if (words.has(literal) && isWord(normal, end - literal.length, end)) {
        for (const filter of words.get(literal) ?? []) report(filter)
      }
      if (!patterns.has(literal)) return
      const word = wordAround(normal, end - literal.length, end)
      const pair = `${literal} ${word}`
      if (comparedPairs.has(pair)) return
      comparedPairs.add(pair)
      for (const filter of patterns.get(literal) ?? []) {
        comparisons += 1
        if (comparisons > MODERATION_LIMITS.patternComparisons) return
        if (matchesPattern(word, filter.value)) report(filter)
      }
    })
  }
}

/** A value that begins or ends with another character than that of a word needs no boundary there. */
function isWord(text: string, start: number, end: number): boolean {
  const isBoundary = (inside: number, outside: number) =>
    !isWordCharacter(text, inside) || !isWordCharacter(text, outside)
  return isBoundary(start, start - 1) && isBoundary(end - 1, end)
}

/** The word around a range; of a very long one only the part near the range. */
function wordAround(text: string, start: number, end: number): string {
  let first = start
  let last = end
  while (start - first < MODERATION_LIMITS.patternWordCharacters && isWordCharacter(text, first - 1)) first -= 1
  while (last - end < MODERATION_LIMITS.patternWordCharacters && isWordCharacter(text, last)) last += 1
  return text.slice(first, last)
}

/** `*` stands for any characters, or none. Each piece is searched once, from left to right. */
function matchesPattern(word: string, pattern: string): boolean {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  const last = pieces.at(-1) ?? ''
  if (!word.startsWith(first) || !word.endsWith(last) || word.length < first.length + last.length) return false
  let from = first.length
  for (const piece of pieces.slice(1, -1)) {
    const at = word.indexOf(piece, from)
    if (at === -1) return false
    from = at + piece.length
  }
  return from <= word.length - last.length
}

function compileLinks(filters: readonly StoredFilter[]): (normal: string, report: ReportMatch) => void {
  const hosts = groupBy(filters, 'link_host')
  const prefixes = groupBy(filters, 'link_prefix', hostOfPrefix)
  if (hosts.size + prefixes.size === 0) return () => {}

  const reportHost = (host: string, report: ReportMatch) => {
    for (const name of withParents(host)) for (const filter of hosts.get(name) ?? []) report(filter)
  }

  return (normal, report) => {
    const compared = new Set<string>()
    for (const link of readWebLinks(normal)) {
      if (!compared.has(link.host)) reportHost(link.host, report)
      compared.add(link.host)
      for (const filter of prefixes.get(link.host) ?? []) if (beginsWith(link, filter.value)) report(filter)
    }
  }
}

function beginsWith({ host, rest }: WebLink, prefix: string): boolean {
  return rest.startsWith(prefix.slice(host.length))
}

function hostOfPrefix(prefix: string): string {
  return prefix.replace(/[/?#].*$/, '')
}

/** `a.b.example`, `b.example`, `example`. */
function* withParents(host: string): Generator<string> {
  for (let at = 0; at !== -1; ) {
    yield host.slice(at)
    const dot = host.indexOf('.', at)
    at = dot === -1 ? -1 : dot + 1
  }
}

function groupBy(
  filters: readonly StoredFilter[],
  kind: StoredFilter['kind'],
  keyOf: (value: string) => string = (value) => value,
): ReadonlyMap<string, readonly StoredFilter[]> {
  const groups = new Map<string, StoredFilter[]>()
  for (const filter of filters) {
    if (filter.kind !== kind) continue
    const key = keyOf(filter.value)
    groups.set(key, [...(groups.get(key) ?? []), filter])
  }
  return groups
}
