import { ProtocolError } from '../errors.js'
import { isWithinLength } from '../values.js'
import { cleanText, type XmlNode } from '../xml/xml.js'
import type { XmlElement } from '../xml/xml-element.js'
import { buildNodes, type EntityDefinition, findProperty, type Property } from './define-entity.js'
import { type Elements, type Relayable, relayables } from './relayables.js'

/** Elements of a relayable are stored and relayed as received; these limits hold where its table has none. */
const limits = { foreignElements: 32, nameLength: 64, textBytes: 4_096 }

export function readElements(definition: EntityDefinition, payload: XmlElement): Elements {
  return signedElements(
    definition,
    payload.children.map(({ name, text }) => [name, text]),
  )
}

/** The signed elements of a relayable: the first of each name, without signatures. */
export function signedElements(definition: EntityDefinition, all: Elements): Elements {
  const texts = new Map<string, string>()
  for (const [name, text] of all) {
    if (!name.includes('signature') && !texts.has(name)) texts.set(name, text)
  }
  const foreign = [...texts.keys()].filter((name) => findProperty(definition, name) === undefined)
  if (foreign.length > limits.foreignElements) {
    throw new ProtocolError('ValidationError', `${definition.name}: has too many elements of unknown names`)
  }
  for (const [name, text] of texts) {
    if (isBounded(findProperty(definition, name))) continue
    if (isWithinLength(name, limits.nameLength) && Buffer.byteLength(text) <= limits.textBytes) continue
    throw new ProtocolError(
      'ValidationError',
      `${definition.name}: the element ${name.slice(0, limits.nameLength)} is too long`,
    )
  }
  return [...texts]
}

/** Properties with a canonical form are stored as received: of any length, perhaps unreadable. */
function isBounded(property: Property<unknown> | undefined): boolean {
  return property !== undefined && property.canonical === undefined
}

/** The elements that the author signs: the received ones, or those of the table in its order. */
export function listElements(relayable: Relayable): Elements {
  if (relayable.elements !== undefined) return relayable.elements
  return buildNodes(relayables[relayable.type], relayable)
    .filter(({ name }) => name !== 'author_signature')
    .map(({ name, content }) => [name, typeof content === 'string' ? cleanText(content) : ''])
}

/** Elements in their order, then the author's signature unchanged; other signatures are dropped. */
export function writeRelayable(relayable: Relayable): XmlNode {
  const nodes = listElements(relayable).map(([name, text]) => ({ name, content: text }))
  const signature = relayable.author_signature
  if (signature !== undefined) nodes.push({ name: 'author_signature', content: signature })
  return { name: relayable.type, content: nodes }
}
