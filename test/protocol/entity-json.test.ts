import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entityFromJson, entityToJson } from '../../src/protocol/entities/entity-json.js'
import { isEntityJson } from '../../src/protocol/entities/entity-schema.js'
import { readEntity } from '../../src/protocol/entities/entity-xml.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { readXml } from '../../src/protocol/xml/xml.js'

const receivedAt = new Date('2024-05-06T07:08:09Z')
const guid = '0123456789abcdef'
const author = 'alma@meadow.example'
const data = { author, guid, parent_guid: guid, text: 'hi' }

function comment(elements: string) {
  const xml = `<comment><author>${author}</author><guid>${guid}</guid><parent_guid>${guid}</parent_guid>${elements}</comment>`
  return readEntity(readXml(xml, 'InvalidPayload'), receivedAt)
}

function fault(json: unknown): string {
  try {
    entityFromJson(json, receivedAt)
    return 'none'
  } catch (error) {
    return error instanceof ProtocolError ? error.fault : 'another error'
  }
}

describe('the JSON form of a relayable', () => {
  it('has known and unknown values, and the order in which they were signed', () => {
    const json = entityToJson(
      comment('<mood>ok</mood><text>hi</text><edited_at>x</edited_at><author_signature>s</author_signature>'),
    )

    expect(json).toEqual({
      entity_type: 'comment',
      entity_data: {
        ...data,
        created_at: '2024-05-06T07:08:09Z',
        mood: 'ok',
        edited_at: null,
        author_signature: 's',
      },
      property_order: ['author', 'guid', 'parent_guid', 'mood', 'text', 'edited_at'],
    })
  })

  it('has an empty signature where there is none', () => {
    expect(entityToJson(comment('<text>hi</text>')).entity_data).toMatchObject({ author_signature: '' })
  })

  it('gives the elements back as they were signed', () => {
    const json = {
      entity_type: 'comment',
      entity_data: { ...data, x: 'a', y: null },
      property_order: ['y', 'text', 'x'],
    }

    expect(entityFromJson(json, receivedAt)).toMatchObject({
      elements: [
        ['y', ''],
        ['text', 'hi'],
        ['x', 'a'],
      ],
    })
  })

  it('is refused if its order has a missing element, or a name that no element can have', () => {
    const withOrder = (property_order: unknown, more = {}) =>
      fault({ entity_type: 'comment', entity_data: { ...data, ...more }, property_order })

    expect(withOrder(['text'])).toBe('none')
    expect(withOrder(['mood'])).toBe('ValidationError')
    expect(withOrder(['toString'])).toBe('ValidationError')
    expect(withOrder(['a b'], { 'a b': 'x' })).toBe('ValidationError')
    expect(withOrder(['a'], { a: {} })).toBe('ValidationError')
    expect(withOrder('text')).toBe('ValidationError')
    expect(withOrder([1], { 1: 'x' })).toBe('ValidationError')
  })

  it('allows every valid XML element name as a key, and no other', () => {
    const places = fc.oneof(fc.nat(0xffff), fc.nat(0xeffff), fc.constantFrom(...Array.from('a-.:·_é٣ª×', codePointOf)))
    const names = fc.array(places, { minLength: 1, maxLength: 3 }).map((points) => String.fromCodePoint(...points))
    fc.assert(
      fc.property(names, (name) => {
        const json = { entity_type: 'comment', entity_data: { ...data, [name]: 'x' }, property_order: [name] }
        expect(fault(json)).toBe(isElementName(name) ? 'none' : 'ValidationError')
      }),
      { numRuns: 2_000 },
    )
  })
})

function codePointOf(character: string): number {
  return character.codePointAt(0) ?? 0
}

/** As the reader of XML sees it. */
function isElementName(name: string): boolean {
  try {
    return readXml(`<${name}/>`, 'InvalidPayload').name === name
  } catch {
    return false
  }
}

describe('an entity in JSON', () => {
  it('keeps to the rules of the wire, which are stricter than the schema', () => {
    const short = { entity_type: 'comment', entity_data: { ...data, text: '' }, property_order: [] }

    expect(isEntityJson(short)).toBe(true)
    expect(fault(short)).toBe('ValidationError')
  })

  it('has values of their own types', () => {
    const message = { author, guid, text: 'x' }
    const withData = (more: object) => fault({ entity_type: 'status_message', entity_data: { ...message, ...more } })

    expect(withData({ public: true })).toBe('none')
    expect(withData({ public: 'true' })).toBe('ValidationError')
    expect(withData({ text: 1 })).toBe('ValidationError')
    expect(withData({ photos: {} })).toBe('ValidationError')
    expect(withData({ poll: { entity_type: 'location', entity_data: {} } })).toBe('ValidationError')
    expect(withData({ poll: null, photos: null })).toBe('none')
  })

  it('has no characters that the wire cannot carry', () => {
    const json = { entity_type: 'status_message', entity_data: { author, guid, text: 'a\u0000b\ud800' } }

    expect(entityFromJson(json, receivedAt)).toMatchObject({ text: 'a\ufffdb\ufffd' })
  })

  it('has none of them in unknown values either', () => {
    const json = { entity_type: 'comment', entity_data: { ...data, mood: 'a\u0000' }, property_order: ['mood'] }

    expect(entityFromJson(json, receivedAt)).toMatchObject({ elements: [['mood', 'a\ufffd']] })
  })

  it('has a type that is known', () => {
    for (const json of [null, [], 'x', {}, { entity_type: 'toString', entity_data: {} }, { entity_type: ['poll'] }]) {
      expect(['UnknownEntity', 'ValidationError']).toContain(fault(json))
    }
  })
})

describe('the schema', () => {
  it('takes a signature of at least 30 characters, or none', () => {
    const signed = (author_signature: string) =>
      isEntityJson({ entity_type: 'comment', entity_data: { ...data, author_signature }, property_order: [] })

    expect([signed(''), signed('s'.repeat(30))]).toEqual([true, true])
    expect([signed('s'), signed('s'.repeat(29))]).toEqual([false, false])
  })

  const poll = { entity_type: 'poll', entity_data: { guid, question: '?', poll_answers: [] } }

  it('neither coerces nor drops values', () => {
    const instance = { entity_type: 'embed', entity_data: { nothing: 'true', extra: 1 }, extra: {} }
    const copy = structuredClone(instance)

    expect(isEntityJson(instance)).toBe(false)
    expect(instance).toEqual(copy)
  })

  it('counts code points and looks into nested entities', () => {
    expect(isEntityJson(poll)).toBe(true)
    expect(isEntityJson({ ...poll, entity_data: { ...poll.entity_data, guid: '🦊'.repeat(15) } })).toBe(false)
    expect(isEntityJson({ ...poll, entity_data: { ...poll.entity_data, guid: '🦊'.repeat(255) } })).toBe(true)
    expect(isEntityJson({ ...poll, entity_data: { ...poll.entity_data, poll_answers: [poll] } })).toBe(false)
  })
})
