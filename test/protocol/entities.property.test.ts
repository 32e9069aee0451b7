import fc from 'fast-check'
import { expect, it } from 'vitest'
import { entityFromJson, entityToJson } from '../../src/protocol/entities/entity-json.js'
import { readEntity, writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { cleanText, readXml } from '../../src/protocol/xml/xml.js'
import { anyText, arbitraryEntities } from './arbitrary-entities.js'

const receivedAt = new Date('2024-05-06T07:08:09Z')
const types = Object.keys(arbitraryEntities) as Entity['type'][]
const roots = types.filter((type) => !['location', 'embed', 'poll', 'poll_answer'].includes(type))

/** An entity as other pods see it: text that XML cannot carry is replaced, what has no value is gone. */
function asSeen(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(asSeen)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const members = Object.entries(value).filter(([name, member]) => member !== undefined && name !== 'elements')
  return Object.fromEntries(members.map(([name, member]) => [name, asSeen(member)]))
}

it.each(roots)('%s is read back from XML as it was written, with any texts', (type) => {
  const arbitrary: fc.Arbitrary<Entity> = arbitraryEntities[type]
  fc.assert(
    fc.property(arbitrary, (entity) => {
      const read = readEntity(readXml(writeEntity(entity), 'InvalidPayload'), receivedAt)
      expect(asSeen(read)).toEqual(asSeen(entity))
    }),
    { numRuns: 200 },
  )
})

it.each(types)('reads %s back from JSON as it was written', (type) => {
  const arbitrary: fc.Arbitrary<Entity> = arbitraryEntities[type]
  fc.assert(
    fc.property(arbitrary, (entity) => {
      const json: unknown = JSON.parse(JSON.stringify(entityToJson(entity)))
      expect(asSeen(entityFromJson(json, receivedAt))).toEqual(asSeen(entity))
    }),
    { numRuns: 100 },
  )
})

it('XML that is not an entity is refused with a ProtocolError only', () => {
  const element = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: 'small' },
      anyText().map((text) => text.replace(/[&<]/g, '')),
      fc
        .tuple(
          fc.constantFrom('comment', 'like', 'profile', 'photo', 'author', 'guid', 'text', 'participants', 'x', 'poll'),
          fc.array(tie('node'), { maxLength: 6 }),
        )
        .map(([name, content]) => `<${name}>${content.join('')}</${name}>`),
    ),
  })).node
  fc.assert(
    fc.property(element, (xml) => {
      try {
        readEntity(readXml(String(xml), 'InvalidPayload'), receivedAt)
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
      }
    }),
    { numRuns: 2_000 },
  )
})

it('JSON that is not an entity is refused with a ProtocolError only', () => {
  const data = fc.dictionary(
    fc.constantFrom('author', 'guid', 'text', 'photos', 'poll', 'public', 'participants', '__proto__'),
    fc.jsonValue({ maxDepth: 3 }),
  )
  const json = fc.record({
    entity_type: fc.constantFrom(...Object.keys(arbitraryEntities), 'toString', '__proto__'),
    entity_data: fc.oneof(data, fc.jsonValue()),
    property_order: fc.jsonValue(),
  })
  fc.assert(
    fc.property(fc.oneof(json, fc.jsonValue()), (value) => {
      try {
        entityFromJson(value, receivedAt)
      } catch (error) {
        expect(error).toBeInstanceOf(ProtocolError)
      }
    }),
    { numRuns: 2_000 },
  )
})
