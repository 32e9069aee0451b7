import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { savePerson } from '../../../src/federation/discovery/save-person.js'
import { listMessagesOfConversation } from '../../../src/persistence/conversations/list-conversations.js'
import type { ConversationEntity, MessageEntity } from '../../../src/protocol/entities/conversations.js'
import { publishRows } from '../../support/databases/publish-rows.js'
import { cardOf } from '../../support/federation/fake-pods.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('announcements, blocks, contacts, notifications, conversations, outbox, waiting')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
  await pod.db('contacts').insert([
    { userId: ann.userId, personId: quin.id, sharing: true },
    { userId: ben.userId, personId: quin.id, receiving: true },
  ])
})

const createdAt = new Date('2025-05-06T07:08:09Z')

function messageBy(author: string, conversationGuid: string, fields: Partial<MessageEntity> = {}): MessageEntity {
  return {
    type: 'message',
    author,
    guid: newGuid(),
    text: 'Hello',
    created_at: createdAt,
    edited_at: undefined,
    conversation_guid: conversationGuid,
    ...fields,
  }
}

function talk(
  participants: readonly { readonly address: string }[],
  fields: Partial<ConversationEntity> = {},
): ConversationEntity {
  const guid = fields.guid ?? newGuid()
  return {
    type: 'conversation',
    author: quin.address,
    guid,
    subject: 'Tea',
    created_at: createdAt,
    participants: participants.map(({ address }) => address),
    messages: [messageBy(quin.address, guid)],
    ...fields,
  }
}

/** Who has it, and how much of it is unread. */
async function seenBy(guid: string): Promise<Record<string, number>> {
  const rows = await pod
    .db('conversationVisibilities')
    .join('conversations', 'conversations.id', 'conversationId')
    .join('people', 'people.id', 'personId')
    .where({ 'conversations.guid': guid })
    .select('address', 'unread')
  return Object.fromEntries(rows.map(({ address, unread }) => [address, unread]))
}

describe('a conversation', () => {
  it('from a contact is stored with its message, which is unread', async () => {
    const conversation = talk([quin, ann, ben, remy])

    expect(await receive(pod, privateMessage(quin, ann, conversation))).toEqual(allStored)

    expect(await seenBy(conversation.guid)).toEqual({
      [quin.address]: 0,
      [ann.address]: 1,
      [ben.address]: 1,
      [remy.address]: 0,
    })
    expect(await pod.db('messages').select('guid', 'text', 'authorId', 'createdAt')).toEqual([
      { guid: conversation.messages[0]?.guid, text: 'Hello', authorId: quin.id, createdAt },
    ])
    const [stored, ...more] = await pod.db('conversations').select('subject', 'createdAt', 'updatedAt')
    expect(more).toEqual([])
    expect(stored).toMatchObject({ subject: 'Tea', createdAt })
    // Its update is the arrival of its message, by our clock.
    expect(Date.now() - stored.updatedAt.getTime()).toBeLessThan(60_000)
    expect(await pod.rows('notifications')).toEqual([0])
  })

  it('is stored once, although each local participant receives it', async () => {
    const conversation = talk([quin, ann, ben])
    const twice = [privateMessage(quin, ann, conversation), privateMessage(quin, ben, conversation)]

    expect(await receive(pod, ...twice)).toEqual({ ...allStored, ignored: 1 })
    expect(await receive(pod, ...twice)).toEqual({ ...allStored, ignored: 2 })

    expect(await seenBy(conversation.guid)).toEqual({ [quin.address]: 0, [ann.address]: 1, [ben.address]: 1 })
    expect(await pod.rows('conversations', 'messages')).toEqual([1, 1])
  })

  it('is rejected when a local participant has no contact with its author', async () => {
    await pod.db('contacts').where({ userId: ben.userId }).delete()
    const [alone, together] = [talk([quin, ann]), talk([quin, ann, ben])]

    const delivered = [
      privateMessage(quin, ann, alone),
      privateMessage(quin, ann, together),
      privateMessage(quin, ben, together),
    ]
    expect(await receive(pod, ...delivered)).toEqual({ ...allStored, rejected: ['NotAllowed', 'NotAllowed'] })
    expect(await pod.db('conversations').pluck('guid')).toEqual([alone.guid])
    expect(await pod.rows('messages')).toEqual([1])
  })

  it('is rejected when a local participant blocks its author, contact or not', async () => {
    await pod.db('blocks').insert({ userId: ben.userId, personId: quin.id })
    const [alone, together] = [talk([quin, ann]), talk([quin, ann, ben])]

    const delivered = [
      privateMessage(quin, ann, alone),
      privateMessage(quin, ann, together),
      privateMessage(quin, ben, together),
    ]
    expect(await receive(pod, ...delivered)).toEqual({ ...allStored, rejected: ['NotAllowed', 'NotAllowed'] })
    expect(await pod.db('conversations').pluck('guid')).toEqual([alone.guid])
  })

  it.each([
    ['without the one it is for', () => privateMessage(quin, ann, talk([quin, ben])), 'RecipientMismatch'],
    ['without its author', () => privateMessage(quin, ann, talk([remy, ann])), 'RecipientMismatch'],
    ['public', () => publicMessage(quin, talk([quin, ann])), 'NotPublic'],
    ['of another person', () => privateMessage(remy, ann, talk([quin, ann, remy])), 'InvalidSender'],
    [
      'with a message of another person',
      () => privateMessage(quin, ann, talk([quin, ann], { messages: [messageBy(remy.address, newGuid())] })),
      'ValidationError',
    ],
  ])('%s is rejected', async (_what, make, fault) => {
    expect(await receive(pod, make())).toEqual({ ...allStored, rejected: [fault] })
    expect(await pod.rows('conversations', 'messages')).toEqual([0, 0])
  })

  it('does not replace a conversation of another author', async () => {
    await pod.db('contacts').insert({ userId: ann.userId, personId: remy.id, sharing: true })
    const first = talk([quin, ann])
    await receive(pod, privateMessage(quin, ann, first))

    const second = talk([remy, ann], { guid: first.guid, author: remy.address, messages: [] })
    expect(await receive(pod, privateMessage(remy, ann, second))).toEqual({ ...allStored, rejected: ['InvalidAuthor'] })
    expect(await seenBy(first.guid)).toEqual({ [quin.address]: 0, [ann.address]: 1 })
  })

  it('is shown to participants who are discovered later, and they may write in it', async () => {
    const sam = pod.fakePods.person('sam@s.example')
    const conversation = talk([quin, ann, sam, { address: 'nobody@pod.example' }])

    await receive(pod, privateMessage(quin, ann, conversation))
    expect(await seenBy(conversation.guid)).toEqual({ [quin.address]: 0, [ann.address]: 1 })
    expect(await pod.db('outbox').where({ queue: 'fetch' }).pluck('data')).toEqual([{ address: sam.address }])

    await savePerson(pod, {
      address: sam.address,
      podUrl: new URL('https://s.example/'),
      hcard: cardOf(sam),
      began: new Date(),
    })
    const answer = messageBy(sam.address, conversation.guid)
    expect(await receive(pod, privateMessage(sam, ann, answer))).toEqual(allStored)

    expect(await seenBy(conversation.guid)).toEqual({ [quin.address]: 0, [ann.address]: 2, [sam.address]: 0 })
    expect(await pod.rows('conversation_unknown_participants')).toEqual([0])
  })
})

describe('a message', () => {
  const begin = async () => {
    const conversation = talk([quin, ann, ben, remy])
    await receive(pod, privateMessage(quin, ann, conversation))
    return conversation.guid
  }

  it('is unread for all local participants but its author, and moves the conversation up', async () => {
    const guid = await begin()
    const later = new Date('2025-05-07T07:08:09Z')
    const first = messageBy(remy.address, guid, { created_at: later })
    const second = messageBy(quin.address, guid)

    expect(
      await receive(
        pod,
        privateMessage(remy, ann, first),
        privateMessage(quin, ben, second),
        privateMessage(remy, ben, first),
      ),
    ).toEqual({
      ...allStored,
      ignored: 1,
    })

    expect(await seenBy(guid)).toEqual({ [quin.address]: 0, [ann.address]: 3, [ben.address]: 3, [remy.address]: 0 })
    const [latest] = await pod.db('messages').orderBy('arrivedAt', 'desc').select('arrivedAt')
    expect(await pod.db('conversations').select('createdAt', 'updatedAt')).toEqual([
      { createdAt, updatedAt: latest.arrivedAt },
    ])
    expect(await pod.db('conversationVisibilities').distinct('updatedAt')).toEqual([{ updatedAt: latest.arrivedAt }])
  })

  it('is never listed before one that arrived earlier, and counts as later than a time before its arrival', async () => {
    const guid = await begin()
    const [before] = await pod.db('conversations').select('updatedAt')
    const answer = messageBy(remy.address, guid, { created_at: new Date('2020-01-01T00:00:00Z') })

    await receive(pod, privateMessage(remy, ann, answer))

    const { items } = await listMessagesOfConversation(pod.db, ann.id, { conversationGuid: guid, offset: 0, limit: 10 })
    expect(items.at(-1)?.guid).toBe(answer.guid)
    const later = { conversationGuid: guid, offset: 0, limit: 10, onlyAfter: before.updatedAt }
    expect((await listMessagesOfConversation(pod.db, ann.id, later)).items.map((message) => message.guid)).toEqual([
      answer.guid,
    ])
  })

  it('of a blocked person is unread only for the others', async () => {
    const conversation = talk([quin, ann, ben], { messages: [] })
    await receive(pod, privateMessage(quin, ann, conversation))
    await pod.db('blocks').insert({ userId: ben.userId, personId: quin.id })

    await receive(pod, privateMessage(quin, ann, messageBy(quin.address, conversation.guid)))

    expect(await seenBy(conversation.guid)).toEqual({ [quin.address]: 0, [ann.address]: 1, [ben.address]: 0 })
    const messages = (await pod.db('messages').pluck('id')).map(Number)
    await publishRows(pod.db, { messages })
    expect(await pod.db('announcements').where({ kind: 'message' }).select('userId')).toEqual([{ userId: ann.userId }])
  })

  it('waits for its conversation, without a fetch', async () => {
    const conversation = talk([quin, ann])
    const message = messageBy(quin.address, conversation.guid)

    expect(await receive(pod, privateMessage(quin, ann, message))).toEqual({
      ...allStored,
      waiting: [`conversation:${conversation.guid}`],
    })
    expect(await pod.db('outbox').where({ queue: 'fetch' })).toEqual([])
    await receive(pod, privateMessage(quin, ann, conversation))
    expect(await pod.db('outbox').where({ queue: 'inbound-private' })).toHaveLength(1)
  })

  it('in the batch of its conversation is stored after it', async () => {
    const conversation = talk([quin, ann])
    const message = messageBy(quin.address, conversation.guid)

    expect(await receive(pod, privateMessage(quin, ann, message), privateMessage(quin, ann, conversation))).toEqual(
      allStored,
    )
    expect(await seenBy(conversation.guid)).toEqual({ [quin.address]: 0, [ann.address]: 2 })
  })

  it.each([
    [
      'by a person outside the conversation',
      async (guid: string) => {
        const sam = await pod.addRemotePerson('sam@s.example')
        return privateMessage(sam, ann, messageBy(sam.address, guid))
      },
      'InvalidAuthor',
    ],
    [
      'signed by another',
      async (guid: string) => privateMessage(remy, ann, messageBy(quin.address, guid)),
      'InvalidSender',
    ],
    ['public', async (guid: string) => publicMessage(quin, messageBy(quin.address, guid)), 'NotPublic'],
  ])('%s is rejected', async (_what, make, fault) => {
    const guid = await begin()

    expect(await receive(pod, await make(guid))).toEqual({ ...allStored, rejected: [fault] })
    expect(await pod.rows('messages')).toEqual([1])
  })

  it('does not replace a message of another author', async () => {
    const guid = await begin()
    const mine = messageBy(quin.address, guid)
    await receive(pod, privateMessage(quin, ann, mine))

    const theirs = messageBy(remy.address, guid, { guid: mine.guid, text: 'Mine' })
    expect(await receive(pod, privateMessage(remy, ann, theirs))).toEqual({ ...allStored, rejected: ['InvalidAuthor'] })
    expect(await pod.db('messages').where({ guid: mine.guid }).pluck('text')).toEqual(['Hello'])
  })

  it('raises the counter for each of many messages in a batch', async () => {
    const guid = await begin()
    const messages = Array.from({ length: 12 }, (_, index) => {
      const author = index % 2 === 0 ? quin : remy
      return privateMessage(author, ann, messageBy(author.address, guid))
    })

    await Promise.all([0, 4, 8].map((from) => receive(pod, ...messages.slice(from), ...messages.slice(0, from))))

    expect(await seenBy(guid)).toMatchObject({ [ann.address]: 13, [ben.address]: 13 })
  })
})
