import type { XmlElement } from '../xml/xml-element.js'
import type { Source } from './define-entity.js'

/** The child elements of an entity as its properties: of equal names the first counts, but for lists. */
export function xmlSource(element: XmlElement): Source {
  const first = (name: string) => element.children.find((child) => child.name === name)
  return {
    entity: element.name,
    text: (property) => first(property)?.text,
    nested(_property, entity) {
      const child = first(entity)
      return child && hasContent(child) ? xmlSource(child) : undefined
    },
    list: (_property, entity) =>
      element.children.filter((child) => child.name === entity && hasContent(child)).map(xmlSource),
  }
}

function hasContent(element: XmlElement): boolean {
  return element.children.length > 0 || element.text !== ''
}
