import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Aspect } from '../../../src/persistence/models/aspect.js'
import { Contact } from '../../../src/persistence/models/contact.js'
import { Person } from '../../../src/persistence/models/person.js'
import { User } from '../../../src/persistence/models/user.js'
import type { ContactEntity } from '../../../src/protocol/entities/people.js'
import { countQueries } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { profileOf } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
let quin: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, contacts, notifications, blocks, conversations, outbox')
  await pod.db('users').update({ followBackAspectId: null })
  ;({ quin } = await pod.remotePeople('quin'))
})

describe('a profile', () => {
  const readQuin = () => Person.query(pod.db).findById(quin.id).withGraphFetched('profile').throwIfNotFound()

  it('replaces all that was there', async () => {
    const first = profileOf(quin, {
      first_name: ' Quin ',
      last_name: 'Tester',
      image_url: '/uploads/large.png',
      image_url_medium: 'https://pictures.example/medium.png',
      image_url_small: 'https://q.example/assets/user/default.png',
      bio: 'Born early',
      birthday: '1990-02-28',
      gender: 'they',
      location: 'Here',
      tag_string: '#Tea #cats',
      searchable: false,
      nsfw: true,
    })

    expect(await receive(pod, publicMessage(quin, first))).toEqual(allStored)
    expect(await readQuin()).toMatchObject({
      name: 'Quin Tester',
      avatarUrl: 'https://pictures.example/medium.png',
      profile: {
        firstName: 'Quin',
        lastName: 'Tester',
        imageUrl: 'https://q.example/uploads/large.png',
        imageUrlMedium: 'https://pictures.example/medium.png',
        imageUrlSmall: null,
        bio: 'Born early',
        birthday: '1990-02-28',
        gender: 'they',
        location: 'Here',
        tags: ['tea', 'cats'],
        searchable: false,
        nsfw: true,
        publicDetails: true,
      },
    })

    expect(await receive(pod, publicMessage(quin, profileOf(quin, { birthday: '' })))).toEqual(allStored)
    expect(await readQuin()).toMatchObject({
      name: '',
      avatarUrl: null,
      profile: {
        firstName: null,
        lastName: null,
        imageUrl: null,
        imageUrlMedium: null,
        bio: '',
        birthday: null,
        gender: null,
        location: '',
        tags: [],
        searchable: true,
        nsfw: false,
      },
    })
  })

  const at = (minute: number) => new Date(Date.UTC(2026, 0, 2, 3, minute))

  it.each([
    ['edited later', { edited_at: at(9) }, at(20), 'second'],
    ['edited earlier', { edited_at: at(7) }, at(20), 'first'],
    ['edited in the same second and accepted later', { edited_at: at(8) }, at(20), 'second'],
    ['edited in the same second and accepted earlier', { edited_at: at(8) }, at(9), 'first'],
    ['that does not say when, accepted later', {}, at(20), 'second'],
    ['that does not say when, accepted before the other was edited', {}, at(7), 'first'],
  ])('%s counts as it should', async (_what, when, acceptedAt, winner) => {
    await receive(pod, publicMessage(quin, profileOf(quin, { first_name: 'first', edited_at: at(8) }), at(10)))

    const end = await receive(pod, publicMessage(quin, profileOf(quin, { first_name: 'second', ...when }), acceptedAt))

    expect(await readQuin()).toMatchObject({ name: winner })
    expect(end.ignored).toBe(winner === 'second' ? 0 : 1)
  })

  it('is stored once of several that are received together: the youngest of them', async () => {
    const entities = [5, 9, 7].map((minute) => profileOf(quin, { first_name: `at ${minute}`, edited_at: at(minute) }))

    expect(await receive(pod, ...entities.map((entity) => publicMessage(quin, entity)))).toEqual({
      ...allStored,
      ignored: 2,
    })
    expect(await readQuin()).toMatchObject({ name: 'at 9' })
  })

  it('counts if it is the last of several that were accepted at once', async () => {
    const names = ['first', 'second', 'third']

    await receive(pod, ...names.map((name) => publicMessage(quin, profileOf(quin, { first_name: name }), at(10))))

    expect(await readQuin()).toMatchObject({ name: 'third' })
  })

  it('with a fast clock does not block later profiles', async () => {
    await receive(
      pod,
      publicMessage(quin, profileOf(quin, { first_name: 'future', edited_at: new Date(Date.now() + 86_400_000) })),
    )
    const later = new Date(Date.now() + 1_000)
    await receive(pod, publicMessage(quin, profileOf(quin, { first_name: 'now' }), later))

    expect(await readQuin()).toMatchObject({ name: 'now' })
  })

  it('is rejected when a public message contains private fields', async () => {
    const quiet = profileOf(quin, { first_name: 'Quiet', public: false })

    expect(await receive(pod, publicMessage(quin, quiet))).toEqual(allStored)
    expect(await receive(pod, publicMessage(quin, { ...quiet, bio: 'Secret' }))).toEqual({
      ...allStored,
      rejected: ['NotPublic'],
    })
    expect(await readQuin()).toMatchObject({ name: 'Quiet', profile: { bio: '', publicDetails: false } })
    expect(
      await receive(pod, privateMessage(quin, ann, { ...quiet, bio: 'Secret' }, new Date(Date.now() + 1_000))),
    ).toEqual(allStored)
    expect(await readQuin()).toMatchObject({ profile: { bio: 'Secret' } })
  })

  it.each([
    ['six tags', { tag_string: '#1 #2 #3 #4 #5 #6' }],
    ['a name with a semicolon', { first_name: 'a;b' }],
    ['a name of 33 characters', { first_name: 'x'.repeat(33) }],
  ])('with %s is refused', async (_what, fields) => {
    await receive(pod, publicMessage(quin, profileOf(quin, { first_name: 'Before' })))

    expect(await receive(pod, publicMessage(quin, profileOf(quin, fields)))).toEqual({
      ...allStored,
      rejected: ['ValidationError'],
    })
    expect(await readQuin()).toMatchObject({ name: 'Before' })
  })

  it('is accepted from its author only', async () => {
    const remy = await pod.addRemotePerson('remy@r.example')

    expect(await receive(pod, publicMessage(remy, profileOf(quin, { first_name: 'Mine' })))).toEqual({
      ...allStored,
      rejected: ['InvalidSender'],
    })
  })

  it('needs as many statements for one person as for thirty', async () => {
    const people = await Promise.all(
      Array.from({ length: 30 }, (_, index) => pod.addRemotePerson(`p${index}@q.example`)),
    )
    const mine = (person: RemotePerson) =>
      publicMessage(person, profileOf(person, { first_name: person.address.slice(0, 9) }))

    await receive(pod, mine(await pod.addRemotePerson('first@q.example'))) // filters and network rules are read again after an idle time
    const one = await countQueries(pod, () => receive(pod, mine(quin)))
    const thirty = await countQueries(pod, () => receive(pod, ...people.map(mine)))

    expect(thirty).toBe(one)
    const named = await Person.query(pod.db)
      .whereIn(
        'id',
        people.map(({ id }) => id),
      )
      .where('name', 'like', 'p%')
    expect(named).toHaveLength(30)
  })
})

describe('a contact', () => {
  function contact(fields: Partial<ContactEntity> = {}): ContactEntity {
    return {
      type: 'contact',
      author: quin.address,
      recipient: ann.address,
      following: true,
      sharing: true,
      blocking: false,
      ...fields,
    }
  }
  const stop = { following: false, sharing: false }
  const contacts = () =>
    Contact.query(pod.db).select('userId', 'personId', 'sharing', 'receiving').orderBy(['userId', 'personId'])
  const listNotifications = () => pod.db('notifications').select('userId', 'type', 'personId').orderBy('userId')
  async function firstAspectOf({ userId }: LocalUser): Promise<number> {
    const { id } = await Aspect.query(pod.db).where({ userId }).orderBy('position').first().throwIfNotFound()
    return id
  }
  const outbox = () => pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')

  it('notifies once when it arrives repeatedly', async () => {
    expect(await receive(pod, privateMessage(quin, ann, contact()))).toEqual(allStored)
    expect(await contacts()).toEqual([{ userId: ann.userId, personId: quin.id, sharing: true, receiving: false }])
    expect(await listNotifications()).toEqual([{ userId: ann.userId, type: 'started_sharing', personId: quin.id }])
    const [before] = await pod.db('notifications')

    await receive(pod, privateMessage(quin, ann, contact()), privateMessage(quin, ann, contact()))

    expect(await pod.db('notifications')).toEqual([before])
    expect(await outbox()).toEqual([])
  })

  it('notifies once in concurrent batches', async () => {
    const remy = await pod.addRemotePerson('remy@r.example')
    const both = [privateMessage(quin, ann, contact()), privateMessage(remy, ann, contact({ author: remy.address }))]

    await Promise.all([0, 1, 2, 3].map((turn) => receive(pod, ...(turn % 2 === 0 ? both : both.toReversed()))))

    expect(await contacts()).toHaveLength(2)
    expect(await listNotifications()).toHaveLength(2)
    expect(await pod.rows('notification_actors')).toEqual([2])
  })

  it('the end of a contact deletes its notification, and the contact if nothing else needs it', async () => {
    await receive(
      pod,
      privateMessage(quin, ann, contact()),
      privateMessage(quin, ben, contact({ recipient: ben.address })),
    )
    await pod.db('contacts').where({ userId: ben.userId }).update({ receiving: true })

    await receive(
      pod,
      privateMessage(quin, ann, contact(stop)),
      privateMessage(quin, ben, contact({ ...stop, recipient: ben.address })),
    )

    expect(await contacts()).toEqual([{ userId: ben.userId, personId: quin.id, sharing: false, receiving: true }])
    expect(await listNotifications()).toEqual([])
    expect(await receive(pod, privateMessage(quin, ann, contact(stop)))).toEqual(allStored)
  })

  it('several contact messages in one batch leave the state of the last one', async () => {
    const said = [contact(), contact(stop), contact()].map((entity) => privateMessage(quin, ann, entity))

    await receive(pod, ...said)
    expect(await contacts()).toMatchObject([{ sharing: true }])
    await receive(pod, ...said.slice(0, 2))
    expect(await contacts()).toEqual([])
  })

  it('is stored without a notification if the user blocks the person', async () => {
    await pod.db('blocks').insert({ userId: ann.userId, personId: quin.id })
    const aspectId = await firstAspectOf(ann)
    await pod.db('users').where({ id: ann.userId }).update({ followBackAspectId: aspectId })

    await receive(pod, privateMessage(quin, ann, contact()))

    expect(await contacts()).toMatchObject([{ sharing: true, receiving: false }])
    expect(await listNotifications()).toEqual([])
    expect(await outbox()).toEqual([])
  })

  it('is returned if the user has set that', async () => {
    const aspectId = await firstAspectOf(ann)
    await User.query(pod.db).findById(ann.userId).patch({ followBackAspectId: aspectId })

    await receive(
      pod,
      privateMessage(quin, ann, contact()),
      privateMessage(quin, ben, contact({ recipient: ben.address })),
    )

    expect(await contacts()).toEqual([
      { userId: ann.userId, personId: quin.id, sharing: true, receiving: true },
      { userId: ben.userId, personId: quin.id, sharing: true, receiving: false },
    ])
    const members = await pod.db('aspectMemberships').join('contacts', 'contacts.id', 'contactId').where({ aspectId })
    expect(members.map(({ personId }) => personId)).toEqual([quin.id])
    expect(await outbox()).toEqual([
      { record: 'contact', userId: ann.userId, personId: quin.id, sharing: true, blocking: false },
      { record: 'profile', personId: ann.id, to: quin.id },
    ])
    expect(await listNotifications()).toHaveLength(2)
  })

  it.each([
    ['for another person', () => privateMessage(quin, ann, contact({ recipient: ben.address })), 'RecipientMismatch'],
    ['public', () => publicMessage(quin, contact()), 'NotPublic'],
    [
      'that shares and blocks',
      () => privateMessage(quin, ann, contact({ following: false, blocking: true })),
      'ValidationError',
    ],
  ])('%s is refused', async (_what, make, fault) => {
    expect(await receive(pod, make())).toEqual({ ...allStored, rejected: [fault] })
    expect(await contacts()).toEqual([])
  })
})

describe('a person who closes their account', () => {
  const deletion = () => ({ type: 'account_deletion', author: quin.address }) as const

  it('deletes their content, and keeps their comments without a name', async () => {
    const post = await addPost(pod, { id: ann.id })
    const mine = await addPost(pod, quin, { text: 'Mine' })
    await addPost(pod, quin, { type: 'Reshare', text: '', rootId: post.id })
    const again = await addPost(pod, { id: ben.id }, { type: 'Reshare', text: '', rootId: mine.id })
    await pod.db('posts').where({ id: post.id }).update({ resharesCount: 1, commentsCount: 1, likesCount: 1 })
    const by = { guid: newGuid(), authorId: quin.id, postId: post.id }
    await pod.db('comments').insert({ ...by, text: 'Hello' })
    await pod.db('likes').insert(by)
    await pod.db('participations').insert(by)
    await pod
      .db('photos')
      .insert({ guid: newGuid(), authorId: quin.id, name: 'a.png', remotePath: 'https://q.example/' })
    await pod.db('mentions').insert({ postId: post.id, personId: quin.id, createdAt: post.createdAt })
    await addAspect(pod, ann.userId, [quin])
    await pod
      .db('notifications')
      .insert({ guid: newGuid(), userId: ann.userId, type: 'started_sharing', personId: quin.id })
    await pod
      .db('profiles')
      .where({ personId: quin.id })
      .update({ firstName: 'Quin', bio: 'I', tags: ['a'], birthday: '1990-01-02' })
    await pod.db('people').where({ id: quin.id }).update({ name: 'Quin' })
    const talk = { authorId: quin.id, subject: 'Hi' }
    const [shared, alone] = await pod
      .db('conversations')
      .insert([
        { guid: newGuid(), ...talk },
        { guid: newGuid(), ...talk },
      ])
      .returning('id')
    const see = (conversationId: number, personId: number) => ({
      conversationId,
      personId,
      createdAt: new Date(),
      updatedAt: new Date(),
    })
    await pod
      .db('conversationVisibilities')
      .insert([see(shared.id, ann.id), see(shared.id, quin.id), see(alone.id, quin.id)])
    await pod.db('messages').insert({ guid: newGuid(), conversationId: shared.id, authorId: quin.id, text: 'Hi' })

    expect(await receive(pod, publicMessage(quin, deletion()))).toEqual(allStored)

    expect(await Person.query(pod.db).findById(quin.id).withGraphFetched('profile')).toMatchObject({
      name: '',
      closedAt: expect.any(Date),
      profile: { firstName: null, bio: '', birthday: null, tags: [], searchable: false },
    })
    expect(await pod.rows('photos', 'participations', 'mentions', 'contacts', 'notifications')).toEqual([0, 0, 0, 0, 0])
    expect(await pod.rows('comments', 'likes', 'messages', 'conversations')).toEqual([1, 1, 1, 1])
    expect(await pod.db('conversationVisibilities').select('personId')).toEqual([{ personId: ann.id }])
    expect(await pod.db('posts').orderBy('id').select('id', 'rootId', 'resharesCount', 'commentsCount')).toEqual([
      { id: post.id, rootId: null, resharesCount: 0, commentsCount: 1 },
      { id: again.id, rootId: null, resharesCount: 0, commentsCount: 0 },
    ])
  })

  it('is closed once, and only by their own message', async () => {
    const remy = await pod.addRemotePerson('remy@r.example')

    expect(await receive(pod, publicMessage(remy, deletion()))).toEqual({ ...allStored, rejected: ['InvalidSender'] })
    expect(await receive(pod, publicMessage(quin, deletion()), publicMessage(quin, deletion()))).toEqual({
      ...allStored,
      ignored: 1,
    })
    expect(await receive(pod, publicMessage(quin, deletion()))).toEqual({ ...allStored, ignored: 1 })
    expect(await Person.query(pod.db).findById(remy.id)).toMatchObject({ closedAt: null })
  })
})
