import { readPlainXml } from '../../src/protocol/xml/plain-xml.js'
import { readXml } from '../../src/protocol/xml/xml.js'
import type { XmlElement } from '../../src/protocol/xml/xml-element.js'

/** What is read without the parser, and what the parser makes of the same. `undefined`: it is left to the parser. */
export function readBothWays(text: string): { readonly plain: unknown; readonly parsed: unknown } | undefined {
  const plain = /[\ud800-\udfff]/u.test(text) ? undefined : readPlainXml(text)
  return plain && { plain: shapeOf(plain), parsed: readByParser(text) }
}

/** A comment at the end changes nothing, and is nothing that is read without the parser. */
function readByParser(text: string): unknown {
  try {
    return shapeOf(readXml(`${text}<!---->`, 'InvalidPayload'))
  } catch {
    return 'refused'
  }
}

function shapeOf({ name, namespace, attributes, children, text }: XmlElement): unknown {
  return [name, namespace, [...attributes], text, children.map(shapeOf)]
}
