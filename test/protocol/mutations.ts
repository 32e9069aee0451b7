import { writeXml, type XmlNode } from '../../src/protocol/xml/xml.js'
import type { XmlElement } from '../../src/protocol/xml/xml-element.js'

/** A source of chance that gives the same numbers for the same seed (mulberry32). */
export interface Chance {
  /** 0 up to, not including, the limit. */
  below(limit: number): number
  oneOf<Value>(values: readonly Value[]): Value
}

export function chance(seed: number): Chance {
  let state = seed >>> 0
  function below(limit: number): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
  return {
    below,
    oneOf<Value>(values: readonly Value[]): Value {
      const value = values[below(values.length)]
      if (value === undefined) throw new Error('nothing to choose from')
      return value
    },
  }
}

/** What trips readers of XML, JSON, base64 and HTML. */
const tokens = [
  ...[
    '<',
    '>',
    '&',
    '"',
    "'",
    '/',
    '=',
    '{',
    '}',
    '[',
    ']',
    ';',
    ':',
    '-',
    '_',
    '+',
    '\\',
    '@',
    '#',
    '.',
    '\u0000',
    '\r',
    '\n',
  ],
  ...[
    '&amp;',
    '&#0;',
    '&#xD800;',
    '&#x10FFFF;',
    '&#99999999999;',
    '&lol;',
    '<![CDATA[',
    ']]>',
    '<!--',
    '-->',
    '<?x ?>',
  ],
  ...[
    '<!DOCTYPE a [<!ENTITY lol "lol">]>',
    '<?xml version="1.1" encoding="latin1"?>',
    '</',
    '/>',
    '<a>',
    '</a>',
    '<photo/>',
  ],
  ...[
    ' xmlns="urn:x"',
    ' xmlns:me="urn:x"',
    ' xml:space="preserve"',
    '<text>',
    '</text>',
    '<author>',
    '</author>',
    '<guid/>',
  ],
  ...[
    '\ud800',
    '\udc00',
    '🦊',
    '\ufffe',
    '\ufeff',
    '\u0085',
    '\u2028',
    'é',
    'true',
    'null',
    '-1',
    '1e999',
    '__proto__',
  ],
  ...['@{', '@{x; ', 'diaspora://', 'a@b/', '====', 'application/xml', 'RSA-SHA256', '2019-01-01T00:00:00Z', '{"a":'],
]

const maxRunCharacters = 4_096

/** The text with one or a few changes: something dropped, doubled, swapped, inserted, or taken from the other text. */
export function mutate(text: string, other: string, random: Chance): string {
  let mutated = text
  for (let left = random.oneOf([1, 1, 2, 3, 8]); left > 0; left -= 1) mutated = change(mutated, other, random)
  return mutated
}

/** XML with other elements in it, which stays well-formed: their order, number, names and texts change. */
export function mutateElements(root: XmlElement, other: XmlElement, random: Chance): string {
  const nodes = root.children.map(nodeOf)
  for (let left = random.oneOf([1, 1, 2, 3, 8]); left > 0 && nodes.length > 0; left -= 1) {
    const at = random.below(nodes.length)
    const node = nodes[at] ?? { name: 'x', content: '' }
    const foreign = other.children.length > 0 ? nodeOf(random.oneOf(other.children)) : node
    const [place, deleted, inserted] = random.oneOf<[number, number, XmlNode[]]>([
      [at, 1, []],
      [at, 1, [foreign]],
      [random.below(nodes.length), 0, [node]],
      [at, 1, [{ name: node.name, content: random.oneOf(tokens) }]],
      [at, 1, [{ name: node.name, content: foreign.content }]],
      [at, 1, [{ name: node.name, content: [node, node] }]],
      [at, 1, [{ name: foreign.name, content: node.content }]],
      [
        at,
        0,
        [
          {
            name: random.oneOf(['x', 'my_signature', '__proto__', 'toString', 'é', 'e\u0301', 'a·']),
            content: random.oneOf(tokens),
          },
        ],
      ],
    ])
    nodes.splice(place, deleted, ...inserted)
  }
  return writeXml({ name: random.below(10) === 0 ? other.name : root.name, content: nodes })
}

function nodeOf({ name, children, text }: XmlElement): XmlNode {
  return { name, content: children.length > 0 ? children.map(nodeOf) : text }
}

function change(text: string, other: string, random: Chance): string {
  const at = random.below(text.length + 1)
  const end = at + 1 + random.below(random.oneOf([2, 16, 256]))
  const before = text.slice(0, at)
  const piece = text.slice(at, end)
  const after = text.slice(end)
  switch (random.below(9)) {
    case 0:
      return before + after
    case 1:
      return before + piece + piece + after
    case 2:
      return before + random.oneOf(tokens) + piece + after
    case 3:
      return before + random.oneOf(tokens) + after
    case 4:
      return before + String.fromCharCode(random.below(random.oneOf([128, 65_536]))) + text.slice(at + 1)
    case 5:
      return after + before
    case 6: {
      const from = random.below(other.length + 1)
      return before + other.slice(from, from + random.below(512)) + after
    }
    case 7: {
      const token = random.oneOf(tokens)
      return before + token.repeat(random.below(Math.ceil(maxRunCharacters / token.length))) + after
    }
    default:
      return random.below(8) === 0 ? before : before + piece.split('').reverse().join('') + after
  }
}
