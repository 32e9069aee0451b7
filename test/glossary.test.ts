import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '..')

/** Words that once stood for the terms on the right. Each pattern matches code, comments and texts. */
const RETIRED: readonly (readonly [pattern: RegExp, term: string])[] = [
  [/\bcoats?\b|[a-z]Coats?\b/g, 'encrypted envelope'],
  [/\bknock|[a-z]Knock/gi, 'enqueue delivery'],
  [/(?<!dead[ -]?)\bletters?\b(?=.*\b(deliver|seal))/gi, 'sealed delivery'],
  [/surroundings/gi, 'references'],
  [/\bdeeds\b|[a-z]Deeds/gi, 'viewer actions'],
  [/(?<!single-?)\bflights\b/gi, 'single-flight'],
  [/gives? way|give-?way|turn(ed|s)? away/gi, 'yield'],
  [/\bspeakers?\b|[a-z]Speaker\b/g, 'podmin account'],
  [/\bunwelcome\b|\boutsiders?\b|\bstrangers?\b/gi, 'blocked, non-participant, unknown person'],
  [/\btaken in\b/gi, 'stored'],
  [/\bat the door\b|\bdoors?\b/gi, 'inbound endpoint'],
  [/\blives? (here|elsewhere)\b/gi, 'local, remote account'],
  [/\basked for\b/gi, 'requested, fetched'],
  [/\b(who|whom|is|are|be|been|was|were) told\b/gi, 'notified'],
  [/\binSight\b/g, 'visible'],
  [/underOurs|\bisOurs\b/gi, 'parentIsLocal, isDatabaseUnavailable'],
  [/\bstirs?\b/gi, 'reorder activity'],
]

/** Texts of the product and its documents. `migrations/index.ts` names migrations that databases have recorded. */
const COVERED = /^(?:(?:src|workers|bin|migrations|scripts|embedded-postgres)\/.*\.(?:ts|mjs)|docs\/.*\.md|[A-Z]+\.md)$/

/** Only these may: names that databases have recorded, and letters of an alphabet. */
const EXEMPT: readonly string[] = [
  'migrations/index.ts',
  'docs/data-model.md',
  'migrations/0013-conversation-strangers.ts',
  'migrations/0099-plain-names.ts',
]

function retiredWordsIn(text: string): string[] {
  return RETIRED.flatMap(([pattern, term]) => (text.match(pattern) ?? []).map((word) => `${word} (${term})`))
}

it('has no retired word in product and documents', () => {
  const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => COVERED.test(path) && !EXEMPT.includes(path))
  expect(files.length).toBeGreaterThan(300)
  const found = files.flatMap((path) =>
    retiredWordsIn(`${path}\n${readFileSync(join(root, path), 'utf8')}`).map((word) => `${path}: ${word}`),
  )
  expect(found).toEqual([])
})

it('finds each retired word, and leaves dead letters alone', () => {
  expect(retiredWordsIn('openCoat() // a letter to deliver').length).toBe(2)
  expect(retiredWordsIn('the dead letters of a pod')).toEqual([])
})
