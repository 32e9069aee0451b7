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
  [/\bat the door\b|\bdoors?\b|[a-z]Doors?\b/gi, 'inbound endpoint'],
  [/\blives? (here|elsewhere)\b/gi, 'local, remote account'],
  [/\basked for\b/gi, 'requested, fetched'],
  [/\b(who|whom|is|are|be|been|was|were) told\b/gi, 'notified'],
  [/\binSight\b/g, 'visible'],
  [/underOurs|\bisOurs\b/gi, 'parentIsLocal, isDatabaseUnavailable'],
  [/\bstirs?\b/gi, 'reorder activity'],
  [/\bhunger\b|[a-z]Hunger/gi, 'complete parts'],
  [/\bfates?\b|[a-z]Fates?\b/g, 'handling, outcome'],
  [/\bjudge?ments?\b|[a-z]Judge?ments?\b/gi, 'batch results'],
  [/\buntold\b|\b(?:some|any|every)bodys?\b(?=:)/gi, 'recipients'],
  [
    /\bgive(?:Notice|Cluster)\b|\bbecomeOwner\b|\b(?:until|end)[A-Z]\w*(?:Gone|Stuck)\b/g,
    'send, change owner, wait for, watchdog',
  ],
  [/\b(?:note|forget)(?:[A-Z]\w*)(?=\()/g, 'record, add, delete'],
  [/\bkeep(?:Running|Account|Heartbeat|Applicable|Language)\b/g, 'supervise, cancel, start, filter, set'],
  [/\b(?:[A-Z]+_)*AT_ONCE\b/g, '..._BATCH_SIZE, MAX_CONCURRENT_...'],
  [/\b(?:(?:[A-Z]+_)+EVERY|(?:[A-Z]+_)*EVERY_(?:MS|S|SECONDS))\b/g, '..._INTERVAL_MS'],
  [/\b[a-z]\w*(?:AtOnce|EveryMs)\b|\batOnce[A-Z]?/g, 'maxConcurrent..., ...PerBatch, ...IntervalMs'],
  [/[a-z]Room(?:s?\b|[A-Z])|\bmakes? room\b/g, 'free memory, capacity, free space'],
  [/\b(?:find|present|read|require|start)Whole|\bWhole(?:Case|Cluster|Filter|Person|Pod)/g, 'details, complete'],
  [
    /\b(?:[A-Z]+_)*(?:MOST|LONGEST|SHORTEST|FEWEST|SMALLEST)_[A-Z]|\b(?:[A-Z]+_)+AT_MOST\b|\b(?:atMost|atLeast|fewest[A-Z])/g,
    'MAX_..., MIN_..., max..., min...',
  ],
  [/\bArrived[A-Z]|[pP]odsMet\b/g, 'Received..., Delivered..., known pods'],
  [/\b(?:[A-Z]+_)+LOOKS\b|[a-z]LookMs\b/g, 'variants, colours, poll interval'],
  [/(?<![-\w'"`/])look-ups?\b/gi, 'lookup'],
  [/\bend(?:="|: ')(?:over|wrong)\b/g, 'ignored, rejected (label of a metric)'],
  [/\bsettle(?:Batch|Stored)|\bEntitySettlement\b/g, 'write follow-ups, effects of stored entities'],
  [/\blocal[- ]?runs?\b|local(?:Handlers|Delivery)\b|Local(?:Runs?|Handler|Deliver(?:y|ies))\b/g, 'in-process run'],
  [/\bunseal/gi, 'decrypt'],
  [/\bstartNothingNew\b/g, 'stopping'],
  [
    /\b(?:actOnUser|stateWord|doButton|changeOrErrors|caseOr|pageAt|endsSomething|openEnvelope)\b/g,
    'a verb and its object',
  ],
]

/** Texts of the product, its tests and its documents. `migrations/index.ts` names migrations that databases have recorded. */
const COVERED =
  /^(?:(?:src|workers|bin|migrations|scripts|embedded-postgres|bench|test|deploy)\/.*\.(?:ts|mjs)|deploy\/.*\.(?:ya?ml|json)|docs\/.*\.md|[A-Z]+\.md)$/

/** Only these may: names that databases have recorded, and letters of an alphabet. */
const EXEMPT: readonly string[] = [
  'migrations/index.ts',
  'migrations/0013-conversation-strangers.ts',
  'migrations/0099-plain-names.ts',
  'migrations/0043-unproven-senders.ts',
  'test/glossary.test.ts',
]

function retiredWordsIn(text: string): string[] {
  return RETIRED.flatMap(([pattern, term]) => (text.match(pattern) ?? []).map((word) => `${word} (${term})`))
}

it('has no retired word in product, tests and documents', () => {
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
  expect(retiredWordsIn('pod_inbound_messages_total{end="wrong"}').length).toBe(1)
  expect(retiredWordsIn('the dead letters of a pod')).toEqual([])
})
