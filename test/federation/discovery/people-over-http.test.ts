import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { getConversation, listConversationMessages } from '../../../src/domain/conversations/conversations.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Person } from '../../../src/persistence/models/person.js'
import type { ConversationEntity, MessageEntity } from '../../../src/protocol/entities/conversations.js'
import type { ContactEntity } from '../../../src/protocol/entities/people.js'
import type { PhotoEntity } from '../../../src/protocol/entities/posts.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { addPost } from '../../support/databases/rows.js'
import { profileOf } from '../../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('messages about people from other pods, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: InboundPod
  let ann: TestPerson
  let ben: TestPerson
  let quin: FakePerson
  let annAddress: string
  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores })
    ;({ ann, ben } = await pod.people('ann', 'ben'))
    annAddress = ann.account.address
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })
  beforeEach(async () => {
    await pod.waitUntilIdle()
    await pod.db.raw('truncate contacts, notifications, conversations, posts, photos, account_migrations cascade')
    await pod.db('people').whereNotNull('podId').delete()
    quin = fakePods.person('quin@q.example')
  })

  const contactOf = (sharing: boolean): ContactEntity => {
    return {
      type: 'contact',
      author: quin.address,
      recipient: annAddress,
      following: sharing,
      sharing,
      blocking: false,
    }
  }
  const rowOf = ({ address }: { readonly address: string }) =>
    Person.query(pod.db).findOne({ address }).withGraphFetched('profile').throwIfNotFound()

  it('a profile replaces the stored one; fields that it lacks become empty', async () => {
    expect(await pod.postPublic(profileOf(quin, { first_name: 'Quin', bio: 'Hello' }), quin)).toBe(202)
    await pod.waitUntilIdle()
    expect(await rowOf(quin)).toMatchObject({ name: 'Quin', profile: { bio: 'Hello' } })

    await pod.postPublic(profileOf(quin), quin)
    await pod.waitUntilIdle()
    expect(await rowOf(quin)).toMatchObject({ name: '', profile: { bio: '' } })

    await pod.postPublic(profileOf(quin, { first_name: 'Quiet', bio: 'Secret', public: false }), quin)
    await pod.waitUntilIdle()
    expect(await rowOf(quin)).toMatchObject({ name: '' })
  })

  it('a contact message that starts sharing creates one notification; one that ends sharing deletes it', async () => {
    const notificationTypes = () => pod.db('notifications').pluck('type')
    expect(await pod.postPrivate(contactOf(true), quin, ann)).toBe(202)
    await pod.postPrivate(contactOf(true), quin, ann)
    await pod.waitUntilIdle()
    expect(await notificationTypes()).toEqual(['started_sharing'])
    expect(await pod.rows('contacts', 'notification_actors')).toEqual([1, 1])

    await pod.postPrivate(contactOf(false), quin, ann)
    await pod.waitUntilIdle()
    expect(await notificationTypes()).toEqual([])
    expect(await pod.rows('contacts')).toEqual([0])
  })

  it('a conversation of a contact is stored with its messages in any order of arrival, one of an unknown person is refused', async () => {
    await pod.postPrivate(contactOf(true), quin, ann)
    await pod.waitUntilIdle()
    const guid = newGuid()
    const message = (fields: Partial<MessageEntity> = {}): MessageEntity => ({
      type: 'message',
      author: quin.address,
      guid: newGuid(),
      text: 'First',
      created_at: new Date('2025-01-02T03:04:05Z'),
      edited_at: undefined,
      conversation_guid: guid,
      ...fields,
    })
    const conversation: ConversationEntity = {
      type: 'conversation',
      author: quin.address,
      guid,
      subject: 'Tea',
      created_at: new Date('2025-01-02T03:04:05Z'),
      participants: [quin.address, annAddress],
      messages: [message()],
    }
    const unknown = fakePods.person('unknown@s.example')

    await pod.postPrivate(message({ text: 'Second', created_at: new Date('2025-01-02T03:05:06Z') }), quin, ann)
    await pod.waitUntilIdle()
    expect(await pod.rows('messages', 'waiting')).toEqual([0, 1])
    await pod.postPrivate(conversation, quin, ann)
    await pod.waitUntilIdle()
    await pod.postPrivate(message({ author: unknown.address, text: 'Mine' }), unknown, ann)
    await pod.postPrivate(
      {
        ...conversation,
        guid: newGuid(),
        author: unknown.address,
        participants: [unknown.address, annAddress],
        messages: [],
      },
      unknown,
      ann,
    )
    await pod.waitUntilIdle()

    const viewer = await viewerOf(pod, ann)
    const known = await getConversation(pod, viewer, guid)
    expect(known).toMatchObject({ subject: 'Tea', read: false })
    const { items: messages } = await listConversationMessages(pod, viewer, guid, { offset: 0, limit: 9 })
    expect(messages.map(({ text }) => text)).toEqual(['First', 'Second'])
    expect(await pod.db('conversationVisibilities').max('unread')).toEqual([{ max: 2 }])
    expect(await pod.rows('conversations', 'waiting')).toEqual([1, 0])
    expect(await pod.db('notifications').pluck('type')).toEqual(['started_sharing'])
  })

  it('a photo can be changed only by its author', async () => {
    const photo: PhotoEntity = {
      type: 'photo',
      guid: newGuid(),
      author: quin.address,
      public: true,
      created_at: new Date('2025-01-02T03:04:05Z'),
      edited_at: undefined,
      remote_photo_path: 'https://q.example/uploads/',
      remote_photo_name: 'a.png',
      text: undefined,
      status_message_guid: undefined,
      height: 1,
      width: 1,
    }
    const remy = fakePods.person('remy@r.example')
    await pod.postPublic(photo, quin)
    await pod.waitUntilIdle()
    await pod.postPublic({ ...photo, height: 2 }, quin)
    await pod.postPublic({ ...photo, author: remy.address, height: 3 }, remy)
    await pod.waitUntilIdle()

    expect(await pod.db('photos').select('height', 'width')).toEqual([{ height: 2, width: 1 }])
  })

  it('an account deletion closes the person; an account migration moves the posts to the new identity', async () => {
    const moved = fakePods.person('quin2@r.example')
    const remy = fakePods.person('remy@r.example')
    for (const person of [quin, moved, remy]) await pod.postPublic(profileOf(person, { first_name: 'Known' }), person)
    await pod.waitUntilIdle()
    const [first, second] = [await addPost(pod, await rowOf(quin)), await addPost(pod, await rowOf(remy))]
    await pod.postPublic(
      {
        type: 'account_migration',
        author: quin.address,
        profile: profileOf(moved, { first_name: 'Moved' }),
        signature: signMigration({ from: quin.address, to: moved.address }, moved.privateKey),
        old_identity: quin.address,
        remote_photo_path: undefined,
      },
      quin,
    )
    await pod.postPublic({ type: 'account_deletion', author: remy.address }, remy)
    await pod.postPublic({ type: 'account_deletion', author: remy.address }, remy)
    await pod.waitUntilIdle()

    expect(await rowOf(quin)).toMatchObject({ name: '', closedAt: expect.any(Date) })
    expect(await rowOf(remy)).toMatchObject({ name: '', closedAt: expect.any(Date) })
    const { id, name } = await rowOf(moved)
    expect(name).toBe('Moved')
    expect(await pod.db('posts').select('id', 'authorId')).toEqual([{ id: first.id, authorId: id }])
    expect(second.id).not.toBe(first.id)
  })

  it('a private message to a closed account causes an account deletion for the pod of the sender', async () => {
    const { guid, address } = ben.account
    await pod.db('people').where({ guid }).update({ closedAt: new Date() })

    expect(await pod.postPrivate({ ...contactOf(true), recipient: address }, quin, ben)).toBe(202)
    await pod.waitUntilIdle()

    const sent = await pod
      .db('outboundMessages')
      .join('deliveries', 'deliveries.messageId', 'outboundMessages.id')
      .join('pods', 'pods.id', 'deliveries.podId')
      .where({ guid })
      .select('record', 'public', 'host')
    expect(sent).toEqual([{ record: 'account_deletion', public: true, host: 'q.example' }])
  })
})
