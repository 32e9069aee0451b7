import { type SaxesAttributeNS, SaxesParser } from 'saxes'
import { ProtocolError, type ProtocolFault } from '../errors.js'
import { readPlainXml } from './plain-xml.js'
import { Element, type XmlElement } from './xml-element.js'

/** Input of `writeXml`: an element with text, or with elements. */
export interface XmlNode {
  readonly name: string
  readonly content: string | readonly XmlNode[]
}

// The largest legal message, 65 535 characters written as references, has less than a quarter of this.
const limits = { characters: 4 * 1024 * 1024, depth: 32, elements: 20_000, attributes: 1_000, prolog: 64 * 1024 }

/** Throws `ProtocolError(fault)` unless the source is well-formed XML 1.0 in UTF-8, without a DOCTYPE, within the limits above. */
export function readXml(source: string | Uint8Array, fault: ProtocolFault): XmlElement {
  try {
    if (source.length > limits.characters) throw new Error('it is too long')
    const text = typeof source === 'string' ? wellFormed(source) : utf8.decode(source)
    return readPlainXml(text) ?? parse(text)
  } catch (error) {
    throw new ProtocolError(fault, `not acceptable as XML: ${messageOf(error)}`, { cause: error })
  }
}

/** Writes one line that every pod reads back to the same text. */
export function writeXml({ name, content }: XmlNode): string {
  return `<${name}>${typeof content === 'string' ? escapeXml(content) : content.map(writeXml).join('')}</${name}>`
}

/** Replaces characters that XML forbids by U+FFFD. Must be applied before signing: the reader sees the cleaned text. */
export function cleanText(text: string): string {
  return text.replace(forbidden, '\ufffd')
}

export function isCleanText(text: string): boolean {
  return text.search(forbidden) === -1
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
// A lone surrogate is invalid UTF-8, and saxes accepts some of them.
const loneSurrogate = /[\ud800-\udfff]/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that XML forbids
const forbidden = /[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]/gu

function wellFormed(text: string): string {
  if (loneSurrogate.test(text)) throw new Error('it has a lone surrogate')
  return text
}

function parse(text: string): XmlElement {
  const tree = new TreeBuilder()
  // The version in the declaration must not switch saxes to XML 1.1.
  const parser = new SaxesParser({ xmlns: true, defaultXMLVersion: '1.0', forceXMLVersion: true })
  // At most six handlers: a seventh makes V8 treat the parser as a dictionary, ten times slower.
  parser.on('doctype', () => {
    throw new Error('it has a document type')
  })
  parser.on('attribute', () => tree.countAttribute())
  parser.on('opentag', (tag) => tree.open(tag.local, tag.uri, tag.attributes))
  parser.on('closetag', () => tree.close())
  parser.on('text', (run) => tree.addText(run))
  parser.on('cdata', (run) => tree.addText(run))

  // A long DOCTYPE is rejected before saxes, which is slow on it, has read all of it.
  parser.write(text.slice(0, limits.prolog))
  const { encoding } = parser.xmlDecl
  if (encoding !== undefined && encoding.toLowerCase() !== 'utf-8') throw new Error(`its encoding is ${encoding}`)
  if (tree.root === undefined) throw new Error('it has no element near its beginning')
  parser.write(text.slice(limits.prolog)).close()
  return tree.root
}

/** Builds the tree from parser events; saxes guarantees correct nesting. */
class TreeBuilder {
  root: Element | undefined
  readonly #openElements: Element[] = []
  #elements = 0
  #attributes = 0

  countAttribute(): void {
    this.#attributes += 1
    if (this.#attributes > limits.attributes) throw new Error('it has too many attributes')
  }

  open(name: string, namespace: string, attributes: Record<string, SaxesAttributeNS>): void {
    this.#elements += 1
    if (this.#elements > limits.elements) throw new Error('it has too many elements')
    // Checked at once: resolving a prefix costs saxes more with every level.
    if (this.#openElements.length === limits.depth) throw new Error('it is nested too deep')

    const element = new Element(name, namespace, mapOf(attributes))
    const parent = this.#openElements.at(-1)
    if (parent === undefined) {
      this.root = element
    } else {
      parent.append(element)
    }
    this.#openElements.push(element)
  }

  close(): void {
    this.#openElements.pop()
  }

  addText(run: string): void {
    this.#openElements.at(-1)?.appendText(run)
  }
}

function mapOf(attributes: Record<string, SaxesAttributeNS>): ReadonlyMap<string, string> | undefined {
  const attributeList = Object.values(attributes)
  return attributeList.length === 0 ? undefined : new Map(attributeList.map(({ name, value }) => [name, value]))
}

function escapeXml(text: string): string {
  return cleanText(text).replace(/[&<>\r]/g, (character) => escapes[character] ?? character)
}

// A bare carriage return would be read back as a line feed, and the signature over the text would be invalid.
const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\r': '&#xD;' }

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(/\.$/, '') : String(error)
}
