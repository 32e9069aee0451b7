import { deepEqual } from 'node:assert/strict'
import { readBothWays } from './both-readers.js'
import type { RunResult } from './fuzz-run.js'
import { type Chance, chance, mutate } from './mutations.js'
import { readVectors } from './vectors.js'

/**
 * Compares the reader of plain XML with the parser. A run reads one document, generated or mutated, and is reproduced by seed and
 * number. It throws if the plain reader accepts a document that the parser rejects, or reads it differently. `opened`: the plain
 * reader accepted the document.
 */
export function openXmlReadersFuzzer(seed: number): (run: number) => RunResult {
  const payloads = readVectors(new URL('../vectors/federation.json', import.meta.url)).send.map(
    ({ payload_xml }) => payload_xml,
  )
  return (run) => {
    const random = chance(Math.imul(seed, 0x9e3779b1) ^ Math.imul(run + 1, 0x85ebca6b))
    const both = readBothWays(documentOf(payloads, random))
    deepEqual(both?.plain, both?.parsed)
    return { opened: both !== undefined }
  }
}

function documentOf(payloads: readonly string[], random: Chance): string {
  switch (random.below(4)) {
    case 0:
      return generate(random)
    case 1:
      return mutate(generate(random), random.oneOf(payloads), random)
    case 2:
      return mutate(random.oneOf(payloads), generate(random), random)
    default:
      return mutate(random.oneOf(payloads), random.oneOf(payloads), random)
  }
}

const beginnings = [
  ...['', '', '', '\n', '<?xml version="1.0"?>', '<?xml version="1.0" encoding="UTF-8"?>\n'],
  ...[`<?xml version='1.0'?>`, '<?xml version="1.1"?>', '<?xml version="1.0" encoding="latin1"?>', '\ufeff'],
]
const names = ['a', 'text', 'status_message', '_x', 'a.b-c1', 'xml', '__proto__', 'é', 'p:a', 'xmlns', 'a·', '-a', '1a']
/** Plain documents are frequent, so that most runs reach the comparison. */
const usualNames = 6
const texts = [
  ...['x', ' ', '\n\t', 'é', '🦊', '日本', '&amp;', '&lt;', '&#65;', '&#x1F98A;', '&#13;', '&#x85;', '"\'', ']]', '/'],
  ...['&', '&#0;', '&#xD83D;', '&#x110000;', '&#X41;', '&nbsp;', '&amp', '\r', '\0', '\ufffe', ']]>', '>', '\u2028'],
  ...['<!-- c -->', '<![CDATA[<b>]]>', '<?pi?>', '<', '\ud83d', '&#;', '&#x;', '&#00065;', '&#0000065;', '&;'],
]
const usualTexts = 15
const endings = ['', '', '', '\n', ' ', '<!-- c -->', '<?pi?>', 'x', '\u00a0', '\0', '<a/>', '&#10;']

function generate(random: Chance): string {
  const isUsual = random.below(3) > 0
  return oneOf(beginnings, 6) + element(random.oneOf([1, 2, 3, 4, 17])) + oneOf(endings, 5)

  function oneOf(pieces: readonly string[], usual: number): string {
    return pieces[random.below(isUsual ? usual : pieces.length)] ?? ''
  }

  function element(depth: number): string {
    const name = oneOf(names, usualNames)
    if (random.below(6) === 0) return `<${name}${isUsual ? '' : random.oneOf(['', ' ', ' b="1"'])}/>`
    const length = random.below(depth > 4 ? 2 : 4) + (depth > 4 ? 1 : 0)
    const content = Array.from({ length }, () => {
      return depth > 1 && random.below(2) === 0 ? element(depth - 1) : oneOf(texts, usualTexts)
    })
    const inTag = isUsual ? '' : random.oneOf(['', '', ' ', ' b="1"', ' xmlns="urn:x"', ' b="1" b="2"'])
    return `<${name}${inTag}>${content.join('')}</${isUsual ? name : random.oneOf([name, name, `${name} `, 'b'])}>`
  }
}
