import { describe, expect, it } from 'vitest'
import { entityFromJson } from '../../src/protocol/entities/entity-json.js'
import type { ReceivedEntity } from '../../src/protocol/entities/registry.js'
import { findSenderFault, type References, type SenderCheck } from '../../src/protocol/envelopes/sender-rules.js'

const guid = '0123456789abcdef'
const ann = 'ann@here.example'
const quin = 'quin@q.example'
const remy = 'remy@r.example'
const when = '2024-05-06T07:08:09Z'

const annsPost = { author: ann, isLocal: true, isPublic: true }
const remysPost = { author: remy, isLocal: false, isPublic: true }

type Data = Readonly<Record<string, string | boolean>>

function entity(type: string, data: Data): ReceivedEntity {
  return entityFromJson({ entity_type: type, entity_data: data }, new Date(when)) as ReceivedEntity // only roots are made here
}

function fault(
  type: string,
  data: Data,
  arrival: Partial<Omit<SenderCheck, 'entity'>>,
  references: References = {},
): string {
  const complete: SenderCheck = { sender: quin, signature: 'absent', ...arrival, entity: entity(type, data) }
  return findSenderFault(complete, references) ?? 'none'
}

const relayables: readonly [string, Data][] = [
  ['comment', { author: quin, guid, parent_guid: guid, text: 'x' }],
  ['like', { author: quin, guid, parent_guid: guid, parent_type: 'Post', positive: true }],
  ['poll_participation', { author: quin, guid, parent_guid: guid, poll_answer_guid: guid }],
]
const post = { author: quin, guid, text: 'x' }
const photo = { author: quin, guid, remote_photo_path: 'https://q.example/', remote_photo_name: 'a.jpg' }
const contact = { author: quin, recipient: ann }
const conversation = { author: quin, guid, subject: 's', participants: `${quin};${ann}` }
const message = { author: quin, guid, text: 'x', conversation_guid: guid }
const reshare = { author: quin, guid, root_author: ann, root_guid: guid }
const participation = { author: quin, guid, parent_guid: guid, parent_type: 'Post' }
const retraction = (target_type: string) => ({ author: quin, target_guid: guid, target_type })

describe('an entity that is not a relayable', () => {
  it.each([
    ['status_message', { ...post, public: true }],
    ['photo', { ...photo, public: true }],
    ['reshare', { author: quin, guid }],
    ['participation', participation],
    ['profile', { author: quin, public: true }],
    ['account_deletion', { author: quin }],
  ] as [string, Data][])('comes from its author only: %s', (type, data) => {
    const references = { threadPost: annsPost }

    expect(fault(type, data, { sender: quin }, references)).toBe('none')
    expect(fault(type, data, { sender: remy }, references)).toBe('InvalidSender')
    expect(fault(type, data, { sender: 'Quin@q.example' }, references)).toBe('InvalidSender')
    expect(fault(type, data, { sender: remy, recipient: ann }, references)).toBe('InvalidSender')
  })

  it('is public in a public message', () => {
    expect(fault('status_message', { ...post, public: false }, {})).toBe('NotPublic')
    expect(fault('status_message', { ...post, public: false }, { recipient: ann })).toBe('none')
    expect(fault('status_message', { ...post, public: true }, { recipient: ann })).toBe('none')
    expect(fault('photo', { ...photo, public: false }, {})).toBe('NotPublic')
    expect(fault('photo', { ...photo, public: false }, { recipient: ann })).toBe('none')
  })

  it('is never of a private kind in a public message', () => {
    const references = { conversation: { participants: [quin, ann] } }

    expect(fault('contact', contact, {})).toBe('NotPublic')
    expect(fault('conversation', conversation, {})).toBe('NotPublic')
    expect(fault('message', message, {}, references)).toBe('NotPublic')
  })

  it('contains in public only the public fields of the person', () => {
    expect(fault('profile', { author: quin, first_name: 'Quin', image_url: '/a.png' }, {})).toBe('none')
    for (const detail of [{ bio: 'x' }, { birthday: '1990-01-01' }, { gender: 'x' }, { location: 'x' }]) {
      expect(fault('profile', { author: quin, ...detail }, {})).toBe('NotPublic')
      expect(fault('profile', { author: quin, ...detail, public: true }, {})).toBe('none')
      expect(fault('profile', { author: quin, ...detail }, { recipient: ann })).toBe('none')
    }
  })

  it('is for the person it was encrypted for', () => {
    const references = { conversation: { participants: [quin, ann] } }

    expect(fault('contact', contact, { recipient: ann })).toBe('none')
    expect(fault('contact', contact, { recipient: 'ben@here.example' })).toBe('RecipientMismatch')
    expect(fault('conversation', conversation, { recipient: ann })).toBe('none')
    expect(fault('conversation', conversation, { recipient: 'ben@here.example' })).toBe('RecipientMismatch')
    expect(fault('conversation', { ...conversation, participants: `${remy};${ann}` }, { recipient: ann })).toBe(
      'RecipientMismatch',
    )
    expect(fault('message', message, { recipient: ann }, references)).toBe('none')
    expect(fault('message', message, { recipient: 'ben@here.example' }, references)).toBe('RecipientMismatch')
  })

  it('comes from a participant of the conversation', () => {
    const without = { conversation: { participants: [remy, ann] } }

    expect(fault('message', message, { recipient: ann }, without)).toBe('InvalidAuthor')
    expect(fault('message', message, { recipient: ann })).toBe('ConversationNotFound')
  })

  it('reshares a public post of the author it names', () => {
    expect(fault('reshare', reshare, {}, { threadPost: annsPost })).toBe('none')
    expect(fault('reshare', reshare, {})).toBe('NotFetchable')
    expect(fault('reshare', reshare, {}, { threadPost: remysPost })).toBe('ValidationError')
    expect(fault('reshare', reshare, {}, { threadPost: { ...annsPost, isPublic: false } })).toBe('NotAllowed')
    expect(fault('reshare', { author: quin, guid }, {})).toBe('none')
  })

  it('takes part in a local post', () => {
    expect(fault('participation', participation, {}, { threadPost: annsPost })).toBe('none')
    expect(fault('participation', participation, {}, { threadPost: remysPost })).toBe('ParentNotLocal')
    expect(fault('participation', participation, {})).toBe('ParentNotLocal')
  })
})

describe.each(relayables)('a %s', (type, data) => {
  const signed = { signature: 'valid' } as const

  it('comes from its author if the thread post is local', () => {
    expect(fault(type, data, signed, { threadPost: annsPost })).toBe('none')
    expect(fault(type, data, { ...signed, recipient: ann }, { threadPost: { ...annsPost, isPublic: false } })).toBe(
      'none',
    )
    expect(fault(type, data, signed, { threadPost: remysPost })).toBe('InvalidSender')
  })

  it('comes from the author of the thread post', () => {
    expect(fault(type, data, { ...signed, sender: remy }, { threadPost: remysPost })).toBe('none')
    expect(fault(type, data, { ...signed, sender: remy }, { threadPost: annsPost })).toBe('InvalidSender')
  })

  it('is signed by its author, who need not if the thread post is their own', () => {
    for (const signature of ['invalid', 'absent'] as const) {
      expect(fault(type, data, { signature }, { threadPost: annsPost })).toBe('SignatureVerificationFailed')
      expect(fault(type, data, { signature, sender: remy }, { threadPost: remysPost })).toBe(
        'SignatureVerificationFailed',
      )
      expect(fault(type, { ...data, author: remy }, { signature, sender: remy }, { threadPost: remysPost })).toBe(
        'none',
      )
    }
  })

  it('waits for a thread post that is unknown', () => {
    expect(fault(type, data, signed)).toBe('NotFetchable')
  })
})

describe('a retraction', () => {
  const byRemyUnderAnns = { author: remy, threadPost: { author: ann } }

  it('comes from the author of the target, independent of the named author', () => {
    for (const type of ['Post', 'StatusMessage', 'Photo', 'Comment', 'Like', 'PollParticipation', 'Conversation']) {
      expect(fault('retraction', retraction(type), { sender: remy }, { target: byRemyUnderAnns })).toBe('none')
      expect(fault('retraction', retraction(type), { sender: quin }, { target: byRemyUnderAnns })).toBe('InvalidSender')
    }
  })

  it('of a relayable may come from the author of the thread post, a retraction of another entity may not', () => {
    const allowed = (type: string) =>
      fault('retraction', retraction(type), { sender: ann }, { target: byRemyUnderAnns })

    for (const type of ['Comment', 'Like', 'PollParticipation']) expect(allowed(type)).toBe('none')
    for (const type of ['Post', 'Photo', 'Participation', 'Poll']) expect(allowed(type)).toBe('InvalidSender')
  })

  it('waits for a target that is unknown', () => {
    expect(fault('retraction', retraction('Post'), {})).toBe('TargetNotFound')
  })

  it('of a person comes in a private message', () => {
    const target = { author: quin }

    expect(fault('retraction', retraction('Person'), {}, { target })).toBe('NotPublic')
    expect(fault('retraction', retraction('Person'), { recipient: ann }, { target })).toBe('none')
  })
})

describe('a migration', () => {
  const profile = { entity_type: 'profile', entity_data: { author: remy } }
  const migration = { author: quin, profile } as unknown as Data

  it('is signed by the identity that does not send it', () => {
    expect(fault('account_migration', migration, { signature: 'valid' })).toBe('none')
    expect(fault('account_migration', migration, { signature: 'invalid' })).toBe('SignatureVerificationFailed')
    expect(fault('account_migration', migration, { signature: 'absent' })).toBe('SignatureVerificationFailed')
    expect(fault('account_migration', migration, { signature: 'valid', sender: remy })).toBe('InvalidSender')
  })
})

it('an event is read and ignored', () => {
  const event = { author: quin, guid, summary: 's', start: when }
  const answer = { author: quin, guid, parent_guid: guid, status: 'accepted' }

  expect(fault('event', event, {})).toBe('UnknownEntity')
  expect(fault('event_participation', answer, { signature: 'valid' }, { threadPost: annsPost })).toBe('UnknownEntity')
})
