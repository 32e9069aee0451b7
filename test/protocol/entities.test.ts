import { describe, expect, it } from 'vitest'
import { readEntity, writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { readXml } from '../../src/protocol/xml/xml.js'

const receivedAt = new Date('2024-05-06T07:08:09Z')
const guid = '0123456789abcdef'
const other = 'fedcba9876543210'
const alma = 'alma@meadow.example'
const carla = 'carla@harbor.example:3000'

type Fields = Readonly<Record<string, string | undefined>>

/** An entity of text properties; what a test changes to `undefined` is left out, `raw` is added as it is. */
const valid: Readonly<Record<string, Fields>> = {
  status_message: { author: alma, guid, created_at: '2020-01-02T03:04:05Z', public: 'true', text: 'hi' },
  reshare: { author: alma, guid, root_author: carla, root_guid: other },
  photo: { guid, author: alma, remote_photo_path: 'https://p.example/u/', remote_photo_name: 'a.jpg' },
  comment: { author: alma, guid, parent_guid: other, text: 'hi' },
  like: { author: alma, guid, parent_guid: other, parent_type: 'Post', positive: 'true' },
  poll_participation: { author: alma, guid, parent_guid: other, poll_answer_guid: other },
  event_participation: { author: alma, guid, parent_guid: other, status: 'accepted' },
  participation: { author: alma, guid, parent_guid: other, parent_type: 'Post' },
  profile: { author: alma },
  contact: { author: alma, recipient: carla },
  conversation: { author: alma, guid, subject: 's', participants: `${alma};${carla}` },
  message: { author: alma, guid, text: 'hi', conversation_guid: other },
  retraction: { author: alma, target_guid: guid, target_type: 'Post' },
  account_deletion: { author: alma },
  event: { author: alma, guid, summary: 's', start: '2020-01-02T03:04:05Z' },
}

function payload(type: string, changes: Fields = {}, raw = ''): string {
  const fields = Object.entries({ ...valid[type], ...changes })
  const elements = fields.map(([name, text]) => (text === undefined ? '' : `<${name}>${text}</${name}>`))
  return `<${type}>${elements.join('')}${raw}</${type}>`
}

function read(xml: string) {
  return readEntity(readXml(xml, 'InvalidPayload'), receivedAt)
}

function refusal(xml: string): string {
  try {
    read(xml)
    return 'none'
  } catch (error) {
    return error instanceof ProtocolError ? `${error.fault}: ${error.message}` : 'another error'
  }
}

const photo = (author = alma) => `<photo><guid>${guid}</guid><author>${author}</author>
  <remote_photo_path>https://p.example/u/</remote_photo_path><remote_photo_name>a.jpg</remote_photo_name></photo>`
const answer = (text = 'yes') => `<poll_answer><guid>${guid}</guid><answer>${text}</answer></poll_answer>`
const poll = (answers: string, question = '?') =>
  `<poll><guid>${guid}</guid><question>${question}</question>${answers}</poll>`
const profileOf = (author: string) => `<profile><author>${author}</author></profile>`
const migration = (author: string, profile: string, rest = '') =>
  `<account_migration><author>${author}</author>${profile}${rest}</account_migration>`

describe.each(Object.keys(valid))('%s', (type) => {
  it('is read with no more than its required properties', () => {
    expect(read(payload(type))).toMatchObject({ type })
  })

  it.each(Object.keys(valid[type] ?? {}).filter((name) => !['created_at', 'public'].includes(name)))(
    'is refused without %s where that is required',
    (name) => {
      expect(refusal(payload(type, { [name]: undefined }))).toMatch(/^ValidationError/)
    },
  )

  it('is refused if its author is not a network ID', () => {
    for (const author of ['', 'alma', 'Alma@meadow.example', ' alma@meadow.example', 'a@b_c.example']) {
      expect(refusal(payload(type, { author }))).toMatch(/^ValidationError: \w+: author/)
    }
  })

  it('ignores unknown elements, attributes, and all but the first of equal names', () => {
    const decorated = payload(type, {}, `<author>${carla}</author><raw_message>x</raw_message>`)
      .replace('<author>', '<author id="1">')
      .replace(`<${type}>`, `<${type} xmlns:x="urn:x" x:y="z">`)

    const plain = { ...read(payload(type)), elements: undefined }
    expect({ ...read(decorated), elements: undefined }).toEqual(plain)
  })
})

describe('missing and unreadable values', () => {
  it('a flag that is missing has its default, one that cannot be read is no default', () => {
    expect(read(payload('status_message', { public: undefined }))).toMatchObject({ public: false })
    expect(refusal(payload('status_message', { public: '' }))).toMatch(/^ValidationError.*public/)
    expect(refusal(payload('status_message', { public: 'maybe' }))).toMatch(/^ValidationError.*public/)
    expect(refusal(payload('photo', { public: ' true' }))).toMatch(/^ValidationError.*public/)
    expect(refusal(payload('contact', { sharing: 'x' }))).toMatch(/^ValidationError.*sharing/)
    expect(refusal(payload('like', { positive: 'x' }))).toMatch(/^ValidationError.*positive/)
    expect(refusal(payload('event', { all_day: '' }))).toMatch(/^ValidationError.*all_day/)
  })

  it('the flags of a profile and blocking fall back to their defaults', () => {
    expect(read(payload('profile', { searchable: '', public: 'maybe', nsfw: '2' }))).toMatchObject({
      searchable: true,
      public: false,
      nsfw: false,
    })
    expect(read(payload('contact', { blocking: '' }))).toMatchObject({
      following: true,
      sharing: true,
      blocking: false,
    })
  })

  it('created_at is the time of receipt', () => {
    for (const created_at of [undefined, '', 'yesterday']) {
      expect(read(payload('status_message', { created_at }))).toMatchObject({ created_at: receivedAt })
    }
  })

  it('an optional number or time that cannot be read is no value', () => {
    const entity = read(payload('photo', { height: '12px', width: '7', edited_at: 'x' }))

    expect(entity).toMatchObject({ width: 7 })
    expect(Object.keys(entity)).not.toContain('height')
    expect(Object.keys(entity)).not.toContain('edited_at')
  })

  it('an optional text that can be read must be right', () => {
    expect(refusal(payload('photo', { status_message_guid: 'short' }))).toMatch(/^ValidationError/)
    expect(Object.keys(read(payload('photo', { status_message_guid: '' })))).not.toContain('status_message_guid')
  })

  it('an empty nested element is none', () => {
    const entity = read(payload('status_message', {}, '<photo/><location/><poll></poll><embed/><event/>'))

    expect(entity).toMatchObject({ photos: [] })
    for (const name of ['location', 'poll', 'embed', 'event']) expect(Object.keys(entity)).not.toContain(name)
  })
})

describe('text', () => {
  it('keeps all characters of nested elements and is never converted', () => {
    const text = ' 007 &#xD;&#10;<![CDATA[<b>]]><i> x<!-- no --> </i>true '

    expect(read(payload('comment', { text }))).toMatchObject({ text: ' 007 \r\n<b> x true ' })
    expect(read(payload('comment', { guid: '0123456789012345' }))).toMatchObject({ guid: '0123456789012345' })
  })

  it('is counted in code points', () => {
    expect(read(payload('comment', { text: '🦊'.repeat(65_535) }))).toMatchObject({ type: 'comment' })
    expect(refusal(payload('comment', { text: '🦊'.repeat(65_536) }))).toMatch(/^ValidationError.*65535/)
    expect(refusal(payload('status_message', { text: 'x'.repeat(65_536) }))).toMatch(/^ValidationError.*65535/)
  })

  it('may be empty in a post, not in a comment or a message', () => {
    expect(read(payload('status_message', { text: '' }))).toMatchObject({ text: '' })
    expect(refusal(payload('comment', { text: '' }))).toMatch(/^ValidationError/)
    expect(refusal(payload('message', { text: '' }))).toMatch(/^ValidationError/)
    expect(read(payload('comment', { text: ' ' }))).toMatchObject({ text: ' ' })
  })
})

describe('values that depend on each other', () => {
  it.each([
    ['a photo of another author', payload('status_message', {}, photo(carla))],
    ['a poll with one answer', payload('status_message', {}, poll(answer()))],
    ['a poll without question', payload('status_message', {}, poll(answer() + answer(), ''))],
    ['an answer of 256 characters', payload('status_message', {}, poll(answer() + answer('x'.repeat(256))))],
    ['101 answers', payload('status_message', {}, poll(answer().repeat(101)))],
    ['a location without latitude', payload('status_message', {}, '<location><address/><lng>1</lng></location>')],
    ['an embed with url and nothing', payload('status_message', {}, embed('https://x.example', 'true'))],
    ['an embed with neither', payload('status_message', {}, '<embed><title>x</title></embed>')],
    ['an embed of something that is not a URL', payload('status_message', {}, embed('/path'))],
    ['an event without start', payload('status_message', {}, payload('event', { start: 'x' }))],
    ['an event in no time zone', payload('status_message', {}, payload('event', { timezone: 'Berlin' }))],
    ['a reshare with half a root', payload('reshare', { root_author: undefined })],
    ['a reshare with the other half', payload('reshare', { root_guid: undefined })],
    ['a photo without path in its URL', payload('photo', { remote_photo_path: 'https://p.example' })],
    ['a photo at no URL', payload('photo', { remote_photo_path: 'https://p.example/ä/' })],
    ['a photo with a long name', payload('photo', { remote_photo_name: 'x'.repeat(256) })],
    ['a like of something else', payload('like', { parent_type: 'Photo' })],
    ['a participation in something else', payload('participation', { parent_type: 'Comment' })],
    ['an event participation with an unknown status', payload('event_participation', { status: 'maybe' })],
    ['a name with a semicolon', payload('profile', { first_name: 'a;b' })],
    ['a first name of 33 characters', payload('profile', { first_name: 'x'.repeat(33) })],
    ['a last name of 33 characters', payload('profile', { last_name: 'x'.repeat(33) })],
    ['a full name of 71 characters', payload('profile', { full_name: 'x'.repeat(71) })],
    ['a gender of 256 characters', payload('profile', { gender: 'x'.repeat(256) })],
    ['a location of 256 characters', payload('profile', { location: 'x'.repeat(256) })],
    ['a birthday without zeros', payload('profile', { birthday: '1988-7-15' })],
    ['a birthday that does not exist', payload('profile', { birthday: '2001-02-29' })],
    ['endless tags', payload('profile', { tag_string: `#${'x'.repeat(65_535)}` })],
    ['an endless image', payload('profile', { image_url: `/${'x'.repeat(65_535)}` })],
    ['six tags', payload('profile', { tag_string: '#a #b #c #d #e #f' })],
    ['sharing and blocking', payload('contact', { following: 'false', blocking: 'true' })],
    ['following and blocking', payload('contact', { sharing: 'false', blocking: 'true' })],
    ['a conversation with oneself', payload('conversation', { participants: `${alma};` })],
    ['an empty entry among the participants', payload('conversation', { participants: `${alma};${carla};;` })],
    ['a participant that is not a network ID', payload('conversation', { participants: `${alma};bob` })],
    ['blanks between participants', payload('conversation', { participants: `${alma}; ${carla}` })],
    ['257 participants', payload('conversation', { participants: Array(257).fill(alma).join(';') })],
    ['an empty subject', payload('conversation', { subject: '' })],
    ['a subject of 256 characters', payload('conversation', { subject: 'x'.repeat(256) })],
    ['a message of another author', payload('conversation', {}, payload('message', { author: carla }))],
    ['a migration without profile', migration(alma, '')],
    ['a migration with an empty profile', migration(alma, '<profile/>')],
    ['a migration by the new identity without the old one', migration(alma, profileOf(alma))],
    ['a migration to oneself', migration(alma, profileOf(alma), `<old_identity>${alma}</old_identity>`)],
  ])('%s is refused', (_what, xml) => {
    expect(refusal(xml)).toMatch(/^ValidationError/)
  })

  it.each([
    ['photos of the same author', payload('status_message', {}, photo() + photo())],
    ['a poll with two answers', payload('status_message', {}, poll(answer() + answer('no')))],
    ['an embed with a url', payload('status_message', {}, embed('https://x.example'))],
    ['an embed with a url and nothing false', payload('status_message', {}, embed('https://x.example', 'false'))],
    ['an event with everything', payload('status_message', {}, payload('event', { timezone: 'Europe/Berlin' }))],
    ['a reshare whose root is gone', payload('reshare', { root_author: undefined, root_guid: undefined })],
    ['a path alone as picture', payload('profile', { image_url: '/assets/user/default.png' })],
    ['an empty birthday', payload('profile', { birthday: '' })],
    ['a name of 32 astral characters', payload('profile', { first_name: '🦊'.repeat(32) })],
    ['a semicolon too many', payload('conversation', { participants: `${alma};${carla};` })],
    ['a migration by the old identity', migration(alma, profileOf(carla))],
    ['a migration by the new one', migration(alma, profileOf(alma), `<old_identity>${carla}</old_identity>`)],
  ])('%s is read', (_what, xml) => {
    expect(refusal(xml)).toBe('none')
  })

  it('reads the old identity of a migration, which is the author unless that is the new one', () => {
    const otherwise = '<old_identity>zoe@old.example</old_identity>'

    expect(read(migration(alma, profileOf(carla)))).toMatchObject({ old_identity: alma })
    expect(read(migration(alma, profileOf(carla), otherwise))).toMatchObject({ old_identity: alma })
    expect(read(migration(alma, profileOf(alma), otherwise))).toMatchObject({ old_identity: 'zoe@old.example' })
  })

  it('keeps the order of answers, messages and participants', () => {
    expect(read(payload('status_message', {}, poll(answer('b') + answer('a') + answer('c'))))).toMatchObject({
      poll: { poll_answers: [{ answer: 'b' }, { answer: 'a' }, { answer: 'c' }] },
    })
    expect(read(payload('conversation', { participants: `${carla};${alma};` }))).toMatchObject({
      participants: [carla, alma],
    })
  })
})

describe('elements that are no entity of a payload', () => {
  it.each([
    'XML',
    'StatusMessage',
    'post',
    'person',
    'related_entity',
    'foo_bar',
    'constructor',
    '__proto__',
    'toString',
  ])('%s is unknown', (name) => {
    expect(refusal(`<${name}><author>${alma}</author></${name}>`)).toMatch(/^UnknownEntity/)
  })

  it.each(['location', 'embed', 'poll', 'poll_answer'])('%s is part of other entities only', (name) => {
    expect(refusal(`<${name}/>`)).toMatch(/^UnknownEntity/)
  })

  it('a retraction of something else is unknown as well', () => {
    for (const target_type of ['post', 'Pod', 'toString']) {
      expect(refusal(payload('retraction', { target_type }))).toMatch(/^UnknownEntity/)
    }
    expect(refusal(payload('retraction', { target_type: '' }))).toMatch(/^ValidationError/)
  })
})

describe('relayables', () => {
  it('are refused with more unknown elements than can be stored', () => {
    const foreign = (count: number, text = '') =>
      Array.from({ length: count }, (_, index) => `<x${index}>${text}</x${index}>`).join('')

    expect(refusal(payload('comment', {}, foreign(32)))).toBe('none')
    expect(refusal(payload('comment', {}, foreign(33)))).toMatch(/^ValidationError/)
    expect(refusal(payload('comment', {}, foreign(1, 'é'.repeat(2_048))))).toBe('none')
    expect(refusal(payload('comment', {}, foreign(1, 'é'.repeat(2_049))))).toMatch(/^ValidationError/)
    expect(refusal(payload('comment', {}, `<${'x'.repeat(65)}/>`))).toMatch(/^ValidationError/)
    expect(refusal(payload('comment', {}, `<toString>${'x'.repeat(4_097)}</toString>`))).toMatch(/^ValidationError/)
  })

  it('are refused with a time that is too long to be stored, readable or not', () => {
    const created_at = (fraction: number) => `2020-01-02T03:04:05.${'1'.repeat(fraction)}Z`

    expect(refusal(payload('comment', { created_at: created_at(4_075) }))).toBe('none')
    expect(refusal(payload('comment', { created_at: created_at(4_076) }))).toMatch(/^ValidationError.*created_at/)
    expect(refusal(payload('comment', { edited_at: 'x'.repeat(4_097) }))).toMatch(/^ValidationError.*edited_at/)
    expect(refusal(payload('comment', { text: 'x'.repeat(4_097) }))).toBe('none')
  })

  it('are written as they were received: order, texts, unknown and empty elements, the signature last', () => {
    const received = `<comment><author_signature>s
s</author_signature><mood>a;b</mood><text> hi&#xD;
</text><guid>${guid}</guid><empty/><x_signature>no</x_signature><parent_guid>${other}</parent_guid><author>${alma}</author></comment>`

    expect(writeEntity(read(received))).toBe(
      `<comment><mood>a;b</mood><text> hi&#xD;
</text><guid>${guid}</guid><empty></empty><parent_guid>${other}</parent_guid><author>${alma}</author><author_signature>s
s</author_signature></comment>`,
    )
  })
})

function embed(url: string, nothing?: string): string {
  return `<embed><url>${url}</url>${nothing === undefined ? '' : `<nothing>${nothing}</nothing>`}</embed>`
}
