import type { XmlElement } from '../xml/xml-element.js'
import type { PropertySource } from './define-entity.js'

/** The child elements of an entity as its properties: the first of each name, all of them for lists. */
export function xmlSource(element: XmlElement): PropertySource {
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
