import { randomInt } from 'node:crypto'
import { commentDocument, postDocument } from '../../src/domain/moderation/filters/filter-document.js'
import { compileFilters, type FilterMatcher } from '../../src/domain/moderation/filters/filter-matcher.js'
import { type NewFilter, readFilterRule } from '../../src/domain/moderation/filters/filters.js'
import type { StoredFilter } from '../../src/persistence/moderation/filters.js'
import { type BenchOptions, median, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'

const FILTERS = 1_000
const MAX_TEXT_CHARACTERS = 65_535
const WARM_UP = 30
const MAX_MS = 5

/** Time of 1 000 filters on a text of maximum length, compared with the maximum of 5 ms. */
export async function* benchFilters({ rounds }: BenchOptions): AsyncGenerator<Result> {
  const matcher = compileFilters(manyFilters())
  const texts = {
    'longest text': words(MAX_TEXT_CHARACTERS),
    'longest text of links': 'https://a.example/b '.repeat(MAX_TEXT_CHARACTERS / 20),
    'links in links': '_www.'.repeat(MAX_TEXT_CHARACTERS / 5),
    'longest word': 'abcde'.repeat(MAX_TEXT_CHARACTERS / 5),
  }
  for (const [name, text] of Object.entries(texts)) {
    const times = Array.from({ length: rounds }, () => millisecondsOf(matcher, text))
    const value = median(times)
    yield {
      bench: 'filters',
      case: name,
      value,
      unit: 'ms',
      limit: MAX_MS,
      ratio: MAX_MS / value,
      floor: FLOORS.filters,
      rounds,
      spread: spreadOf(times),
      cpu_us: {},
      ok: matcher.match(commentDocument(identity, `${text} found1`)).length > 0,
    }
  }
}

const identity = { guid: '0'.repeat(32), author: 'rita@r.example', isPublic: true }

function millisecondsOf(matcher: FilterMatcher, text: string): number {
  const document = postDocument(identity, { text })
  for (let run = 0; run < WARM_UP; run += 1) matcher.match(document)
  const began = performance.now()
  for (let run = 0; run < WARM_UP; run += 1) matcher.match(document)
  return (performance.now() - began) / WARM_UP
}

function manyFilters(): readonly StoredFilter[] {
  const kinds = ['word', 'phrase', 'pattern', 'link_host', 'link_prefix', 'tag'] as const
  return Array.from({ length: FILTERS }, (_, id) => {
    const kind = id === 0 ? 'word' : (kinds[id % kinds.length] ?? 'word')
    return {
      ...readFilterRule({ kind, value: id === 0 ? 'found1' : valueFor(kind), action: 'count' }),
      ...{ id, version: 1, createdBy: 'mod', createdAt: new Date(), changedAt: new Date() },
    }
  })
}

function valueFor(kind: NewFilter['kind']): string {
  switch (kind) {
    case 'phrase':
      return `${word()} ${word()}`
    case 'pattern':
      return `${word()}x*`
    case 'link_host':
      return `${word()}.example`
    case 'link_prefix':
      return `https://${word()}.example/${word()}`
    default:
      return word()
  }
}

function word(): string {
  return Array.from({ length: randomInt(3, 10) }, () => String.fromCharCode(97 + randomInt(26))).join('')
}

function words(length: number): string {
  let text = ''
  while (text.length < length) text += `${word()} `
  return text.slice(0, length)
}
