import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import {
  createMessage,
  getConversation,
  leaveConversation,
  listConversationMessages,
  listConversations,
  setConversationRead,
  startConversation,
} from '../../src/domain/conversations/conversations.js'
import { newGuid } from '../../src/domain/new-guid.js'
import type {
  ConversationFilter,
  ConversationMessageFilter,
} from '../../src/persistence/conversations/list-conversations.js'
import type { Person } from '../../src/persistence/models/person.js'
import type { Services } from '../../src/services/services.js'
import { countOutcomes, reasonOf } from '../support/assertions/refusal-reasons.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let testPod: TestPod
let pod: Services
let ann: Viewer
let ben: Viewer
let carol: Viewer
let guids: Readonly<Record<'ann' | 'ben' | 'carol', string>>
let quin: Person
beforeAll(async () => {
  testPod = await buildPod()
  pod = testPod.pod
  const people = { ...(await testPod.people('ann')), ...(await testPod.people('ben', 'carol')) } // ann comes first
  ann = await viewerOf(pod, people.ann)
  ben = await viewerOf(pod, people.ben)
  carol = await viewerOf(pod, people.carol)
  guids = { ann: people.ann.account.guid, ben: people.ben.account.guid, carol: people.carol.account.guid }
  quin = await addRemotePerson(pod, 'quin@q.example')
  await pod.db('contacts').insert([
    { userId: ann.userId, personId: ben.personId, sharing: true, receiving: true },
    { userId: ann.userId, personId: quin.id, sharing: true, receiving: true },
    { userId: ann.userId, personId: carol.personId, sharing: false, receiving: true },
  ])
})
afterAll(() => testPod.close())
beforeEach(() => pod.db.raw('truncate conversations, outbox, notifications cascade'))

const start = (recipientGuids: readonly string[] = [guids.ben], fields: object = {}) =>
  startConversation(pod, ann, { subject: 'Tea', text: 'Shall we?', recipientGuids, ...fields })
const write = (viewer: Viewer, guid: string, text = 'Yes') =>
  createMessage(pod, viewer, { conversationGuid: guid, text })
const list = async (viewer: Viewer, filter: Partial<ConversationFilter> = {}) =>
  (await listConversations(pod, viewer, { limit: 20, ...filter })).items.map(({ guid }) => guid)
const messagesFor = (viewer: Viewer, guid: string, filter: ConversationMessageFilter) =>
  listConversationMessages(pod, viewer, guid, filter)
const isRead = async (viewer: Viewer, guid: string) => (await getConversation(pod, viewer, guid)).read
const listDispatches = () => pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')
/** The same pod so many minutes later. */
const podAfterMinutes = (minutes: number): Services => ({ ...pod, now: () => new Date(Date.now() + minutes * 60_000) })

describe('starting a conversation', () => {
  it('is visible to all participants and sent to other pods', async () => {
    const conversation = await start([guids.ben, quin.guid])

    expect(conversation).toMatchObject({ subject: 'Tea', read: true, createdAt: expect.any(Date) })
    expect(conversation.participants.map(({ address }) => address)).toEqual([
      'ann@pod.example',
      'ben@pod.example',
      'quin@q.example',
    ])
    expect(await isRead(ben, conversation.guid)).toBe(false)
    expect(await messagesFor(ben, conversation.guid, { offset: 0, limit: 9 })).toMatchObject({
      items: [{ text: 'Shall we?', author: { guid: guids.ann, address: 'ann@pod.example' } }],
      hasMore: false,
    })
    expect(await listDispatches()).toEqual([{ record: 'conversation', guid: conversation.guid }])
    expect(await pod.db('notifications')).toEqual([])
  })

  it.each([
    ['no recipient', () => [], 'recipients_invalid'],
    ['an unknown person', () => [guids.ben, newGuid()], 'recipients_invalid'],
    ['a person who does not share', () => [guids.ben, guids.carol], 'recipients_invalid'],
    ['a person twice', () => [guids.ben, guids.ben], 'recipients_invalid'],
    ['oneself', () => [guids.ann], 'recipients_invalid'],
  ])('with %s is refused', async (_who, recipients, reason) => {
    expect(await reasonOf(start(recipients()))).toBe(reason)
    expect(await pod.db('conversations')).toEqual([])
  })

  it.each([
    [{ subject: ' ' }, 'subject_invalid'],
    [{ subject: 'x'.repeat(256) }, 'subject_invalid'],
    [{ text: '\n' }, 'text_invalid'],
    [{ text: 'x'.repeat(65_536) }, 'text_invalid'],
  ])('without words is refused: %#', async (fields, reason) => {
    expect(await reasonOf(start([guids.ben], fields))).toBe(reason)
  })

  it('with a closed account is refused', async () => {
    await quin.$query(pod.db).patch({ closedAt: new Date() })
    expect(await reasonOf(start([quin.guid]))).toBe('recipients_invalid')
    await quin.$query(pod.db).patch({ closedAt: null })
  })
})

describe('a message', () => {
  it('is unread for the other participants only', async () => {
    const { guid } = await start([guids.ben, quin.guid])
    await setConversationRead(pod, ben, guid, true)

    const message = await write(ann, guid, 'Still there?')

    expect(message).toMatchObject({ text: 'Still there?', author: { guid: guids.ann } })
    expect([await isRead(ann, guid), await isRead(ben, guid)]).toEqual([true, false])
    expect((await listDispatches()).at(-1)).toEqual({ record: 'message', guid: message.guid })
  })

  it('is for those who have the conversation', async () => {
    const { guid } = await start()

    expect(await reasonOf(write(carol, guid))).toBe('conversation_not_found')
    expect(await reasonOf(write(ann, newGuid(), ''))).toBe('conversation_not_found')
    expect(await reasonOf(write(ann, guid, ' '))).toBe('text_invalid')
  })

  it('is listed in order, page by page', async () => {
    const { guid } = await start()
    for (let index = 1; index < 20; index += 1)
      await createMessage(podAfterMinutes(index), ben, { conversationGuid: guid, text: `${index}` })
    const page = async (offset: number, onlyAfter?: Date) =>
      (await messagesFor(ann, guid, { offset, limit: 15, ...(onlyAfter && { onlyAfter }) })).items.map(
        ({ text }) => text,
      )

    const {
      items: [first],
    } = await messagesFor(ann, guid, { offset: 0, limit: 1 })
    expect(await page(0)).toHaveLength(15)
    expect(await page(15)).toEqual(['15', '16', '17', '18', '19'])
    expect(await page(0, first?.createdAt)).toHaveLength(15)
    expect((await page(0, first?.createdAt))[0]).toBe('1')
    expect(await isRead(ann, guid)).toBe(false)
  })
})

describe('the list of conversations', () => {
  it('has the newest first, in pages without gaps', async () => {
    const all: string[] = []
    for (let index = 0; index < 5; index += 1) {
      const frozen = { ...pod, now: () => new Date(2026, 0, 1 + Math.floor(index / 2)) }
      all.unshift(
        (await startConversation(frozen, ann, { subject: `${index}`, text: 'x', recipientGuids: [guids.ben] })).guid,
      )
    }

    const { items: first, hasMore } = await listConversations(pod, ann, { limit: 2 })
    expect(hasMore).toBe(true)
    const last = first.at(-1)
    const key = { time: last?.createdAt ?? new Date(), id: last?.id ?? 0 }
    const rest = await list(ann, { before: key })

    expect([...first.map(({ guid }) => guid), ...rest]).toEqual(all)
    expect(await list(ann, { after: key })).toEqual(all.slice(0, 1))
    expect(await list(ann, { before: { time: key.time } })).toEqual(all.slice(3))
  })

  it('can be of the unread only, and of those with something new', async () => {
    const [one, two] = [await start(), await start()]
    await setConversationRead(pod, ben, one.guid, true)
    expect(await list(ben, { onlyUnread: true })).toEqual([two.guid])
    expect(await list(ben)).toHaveLength(2)

    await createMessage(podAfterMinutes(10), ann, { conversationGuid: one.guid, text: 'New' })
    expect(await list(ben, { onlyAfter: podAfterMinutes(5).now() })).toEqual([one.guid])
    expect(await list(ben, { onlyAfter: podAfterMinutes(15).now() })).toEqual([])
  })

  it('is read with one statement', async () => {
    await start()
    await start([guids.ben, quin.guid])
    const asked: string[] = []
    const statements = await pod.db.transaction(async (transaction) => {
      const connection = await transaction.client.acquireConnection()
      const query = connection.query.bind(connection)
      connection.query = (statement: { name?: string }) => {
        asked.push(statement.name ?? '')
        return query(statement)
      }
      await listConversations({ db: transaction }, ann, { limit: 9 })
      connection.query = query
      return asked.length
    })
    expect(statements).toBe(1)
  })
})

describe('marking and leaving', () => {
  it('sets the mark for the viewer alone', async () => {
    const { guid } = await start()

    expect(await setConversationRead(pod, ann, guid, false)).toMatchObject({ read: false })
    expect(await setConversationRead(pod, ann, guid, true)).toMatchObject({ read: true })
    expect(await isRead(ben, guid)).toBe(false)
    expect(await reasonOf(setConversationRead(pod, carol, guid, true))).toBe('conversation_not_found')
  })

  it('deletes it for the viewer, and for all participants with the last of them', async () => {
    const { guid } = await start()

    await leaveConversation(pod, ann, guid)
    await write(ben, guid)

    expect(await reasonOf(getConversation(pod, ann, guid))).toBe('conversation_not_found')
    expect(await list(ann)).toEqual([])
    expect((await getConversation(pod, ben, guid)).participants).toHaveLength(1)
    expect(await countOutcomes([1, 2, 3].map(() => leaveConversation(pod, ben, guid)))).toEqual({
      conversation_not_found: 2,
      done: 1,
    })
    expect(await pod.db('messages')).toEqual([])
  })
})
