import { ProtocolError } from '../errors.js'
import { fits } from '../values.js'
import { cleanText, type XmlElement, type XmlNode } from '../xml.js'
import { type EntityDefinition, nodesOf } from './define-entity.js'
import { type Elements, type Relayable, relayables } from './relayables.js'

/** What others may add to a relayable we have to keep and send on; that has bounds. */
const limits = { foreignElements: 32, nameLength: 64, foreignTextBytes: 4_096 }

export function readElements(definition: EntityDefinition, payload: XmlElement): Elements {
  return signedElements(
    definition,
    payload.children.map(({ name, text }) => [name, text]),
  )
}

/** The signed ones among the elements of a relayable: of equal names only the first is signed, signatures never are. */
export function signedElements(definition: EntityDefinition, all: Elements): Elements {
  const texts = new Map<string, string>()
  for (const [name, text] of all) {
    if (!name.includes('signature') && !texts.has(name)) texts.set(name, text)
  }
  const foreign = [...texts].filter(([name]) => !Object.hasOwn(definition.properties, name))
  if (foreign.length > limits.foreignElements) {
    throw new ProtocolError('ValidationError', `${definition.name}: has too many elements of unknown names`)
  }
  for (const [name, text] of foreign) {
    if (fits(name, limits.nameLength) && Buffer.byteLength(text) <= limits.foreignTextBytes) continue
    throw new ProtocolError(
      'ValidationError',
      `${definition.name}: the element ${name.slice(0, limits.nameLength)} is too long`,
    )
  }
  return [...texts]
}

/** What the author signs or has signed: the received elements, or those of our own table in its order. */
export function elementsOf(relayable: Relayable): Elements {
  if (relayable.elements !== undefined) return relayable.elements
  return nodesOf(relayables[relayable.type], relayable)
    .filter(({ name }) => name !== 'author_signature')
    .map(({ name, content }) => [name, typeof content === 'string' ? cleanText(content) : ''])
}

/** The elements in their order, the author's signature last and unchanged; other signatures are gone. */
export function writeRelayable(relayable: Relayable): XmlNode {
  const nodes = elementsOf(relayable).map(([name, text]) => ({ name, content: text }))
  const signature = relayable.author_signature
  if (signature !== undefined) nodes.push({ name: 'author_signature', content: signature })
  return { name: relayable.type, content: nodes }
}
