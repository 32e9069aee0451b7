import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { endTemporaryActions } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { suspendAccount } from '../../../src/domain/moderation/restrict-user.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { searchPeople } from '../../../src/domain/people/search-people.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { User } from '../../../src/persistence/models/user.js'
import { liftRestrictions, restrictPeople } from '../../../src/persistence/moderation/restrictions.js'
import { movePersonRows } from '../../../src/persistence/people/move-person.js'
import { findPictureState } from '../../../src/persistence/photos/picture-state.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, migrationOf, photoBy, postBy, reshareBy } from '../../support/federation/entities.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
import { addRemotePerson, type RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
let quin: RemotePerson
let quin2: RemotePerson
let carl: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty(
    'account_migrations, posts, photos, contacts, notifications, blocks, conversations, tombstones, outbox, outbound_messages',
  )
  ;({ quin, carl } = await pod.remotePeople('quin', 'carl'))
  quin2 = await pod.addRemotePerson('quin2@r.example')
})

async function postsOf(id: number): Promise<readonly string[]> {
  return (await Post.query(pod.db).where({ authorId: id }).orderBy('id')).map(({ guid }) => guid)
}

describe('an account migration', () => {
  it.each([
    ['the old identity', () => quin],
    ['the new identity', () => quin2],
  ])('sent by %s moves posts, comments, photos, blocks and conversations', async (_who, sender) => {
    const post = await addPost(pod, quin)
    const root = await addPost(pod, { id: ann.id })
    const by = { authorId: quin.id, postId: root.id }
    await pod.db('comments').insert({ guid: newGuid(), ...by, text: 'Hello' })
    await pod
      .db('photos')
      .insert({ guid: newGuid(), authorId: quin.id, name: 'a.png', remotePath: 'https://q.example/' })
    await pod.db('blocks').insert({ userId: ben.userId, personId: quin.id })
    const [talk] = await pod
      .db('conversations')
      .insert({ guid: newGuid(), authorId: quin.id, subject: 'Hi' })
      .returning('id')
    await pod
      .db('conversationVisibilities')
      .insert({ conversationId: talk.id, personId: quin.id, createdAt: new Date(), updatedAt: new Date() })
    await pod.db('messages').insert({ guid: newGuid(), conversationId: talk.id, authorId: quin.id, text: 'Hi' })
    const entity = { ...migrationOf(quin, quin2, sender()), remote_photo_path: 'https://r.example/photos' }

    expect(await receive(pod, publicMessage(sender(), entity))).toEqual(allStored)

    expect(await postsOf(quin2.id)).toEqual([post.guid])
    const authors = await Promise.all(
      ['comments', 'photos', 'conversations', 'messages'].map((table) => pod.db(table).select('authorId')),
    )
    expect(authors.flat()).toEqual(Array.from({ length: 4 }, () => ({ authorId: quin2.id })))
    const people = await Promise.all(
      ['blocks', 'conversationVisibilities'].map((table) => pod.db(table).select('personId')),
    )
    expect(people.flat()).toEqual([{ personId: quin2.id }, { personId: quin2.id }])
    expect(await pod.db('photos').pluck('remote_path')).toEqual(['https://r.example/photos/'])
    expect(await Person.query(pod.db).findById(quin.id)).toMatchObject({ closedAt: expect.any(Date), name: '' })
    expect(await Person.query(pod.db).findById(quin2.id)).toMatchObject({ closedAt: null, name: 'Moved' })
  })

  it('deletes likes, votes and reshares that both identities have made, and corrects the counters', async () => {
    const post = await addPost(pod, { id: ann.id }, { likesCount: 2, resharesCount: 2, commentsCount: 1 })
    const [comment] = await pod
      .db('comments')
      .insert({ guid: newGuid(), authorId: ann.id, postId: post.id, text: 'Hi', likesCount: 3 })
      .returning('id')
    const [poll] = await pod.db('polls').insert({ guid: newGuid(), postId: post.id, question: 'Tea?' }).returning('id')
    const [answer] = await pod
      .db('pollAnswers')
      .insert({ guid: newGuid(), pollId: poll.id, answer: 'Yes', position: 0, voteCount: 2 })
      .returning('id')
    for (const [authorId, count] of [
      [quin.id, 2],
      [quin2.id, 3],
    ] as const) {
      const mine = { guid: newGuid(), authorId }
      await addPost(pod, { id: authorId }, { type: 'Reshare', text: '', rootId: post.id })
      await pod.db('likes').insert({ ...mine, postId: post.id })
      await pod.db('likes').insert({ ...mine, guid: newGuid(), commentId: comment.id })
      await pod.db('pollParticipations').insert({ ...mine, pollId: poll.id, pollAnswerId: answer.id })
      await pod.db('participations').insert({ ...mine, postId: post.id, count })
      await pod.db('mentions').insert({ personId: authorId, postId: post.id, createdAt: post.createdAt })
    }
    const [notification] = await pod
      .db('notifications')
      .insert({ guid: newGuid(), userId: ann.userId, type: 'liked', postId: post.id })
      .returning('id')
    await pod
      .db('notificationActors')
      .insert([quin, quin2].map(({ id }) => ({ notificationId: notification.id, personId: id })))
    await pod
      .db('notifications')
      .insert(
        [quin, quin2].map(({ id }) => ({ guid: newGuid(), userId: ann.userId, type: 'started_sharing', personId: id })),
      )
    await pod
      .db('tombstones')
      .insert([quin, quin2].map(({ id }) => ({ targetType: 'Post', guid: 'g'.repeat(16), deletedById: id })))

    expect(await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))).toEqual(allStored)

    expect(await pod.rows('likes', 'poll_participations', 'participations', 'mentions')).toEqual([2, 1, 1, 1])
    expect(await pod.rows('posts', 'notifications', 'notification_actors', 'tombstones')).toEqual([2, 2, 1, 1])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({
      likesCount: 1,
      resharesCount: 1,
      commentsCount: 1,
    })
    expect(await pod.db('comments').select('likesCount')).toEqual([{ likesCount: 2 }])
    expect(await pod.db('pollAnswers').select('voteCount')).toEqual([{ voteCount: 1 }])
    expect(await pod.db('participations').select('authorId', 'count')).toEqual([{ authorId: quin2.id, count: 5 }])
  })

  it('merges the contacts of both identities, and sends contact messages to the new pod', async () => {
    const aspect = await addAspect(pod, ann.userId, [quin])
    await addAspect(pod, ann.userId, [quin2])
    await pod.db('contacts').where({ personId: quin.id }).update({ sharing: true })
    await pod.db('contacts').insert({ userId: ben.userId, personId: quin.id, sharing: true })

    await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))

    expect(await pod.db('contacts').orderBy('userId').select('userId', 'personId', 'sharing', 'receiving')).toEqual([
      { userId: ann.userId, personId: quin2.id, sharing: true, receiving: true },
      { userId: ben.userId, personId: quin2.id, sharing: true, receiving: false },
    ])
    expect(await pod.db('aspectMemberships').where({ aspectId: aspect })).toHaveLength(1)
    const contact = { record: 'contact', personId: quin2.id, blocking: false }
    expect(await pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')).toEqual([
      { ...contact, userId: ann.userId, sharing: true },
      { ...contact, userId: ben.userId, sharing: false },
    ])
  })

  it('ends the contact with the new identity of a user who blocks the old one, and the new pod gets it', async () => {
    await addAspect(pod, ann.userId, [quin2])
    await addAspect(pod, ben.userId, [quin2])
    await pod.db('contacts').where({ userId: ben.userId }).update({ sharing: true })
    await pod.db('blocks').insert([ann, ben].map(({ userId }) => ({ userId, personId: quin.id })))

    expect(await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))).toEqual(allStored)

    expect(await pod.db('blocks').orderBy('userId').select('userId', 'personId')).toEqual([
      { userId: ann.userId, personId: quin2.id },
      { userId: ben.userId, personId: quin2.id },
    ])
    expect(await pod.db('contacts').select('userId', 'sharing', 'receiving')).toEqual([
      { userId: ben.userId, sharing: true, receiving: false },
    ])
    expect(await pod.db('aspectMemberships')).toEqual([])
    const contact = { record: 'contact', personId: quin2.id, sharing: false, blocking: true }
    expect(await pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')).toEqual([
      { ...contact, userId: ann.userId },
      { ...contact, userId: ben.userId },
    ])
  })

  it('to a local account ends the contact of a user who blocks the old identity, for both people', async () => {
    await addAspect(pod, ben.userId, [{ id: ann.id }])
    await pod.db('contacts').insert({ userId: ann.userId, personId: ben.id, sharing: true })
    await pod.db('blocks').insert({ userId: ben.userId, personId: quin.id })
    const to = { address: ann.address, privateKey: await loadPrivateKey(pod, ann.id) }
    expect(await receive(pod, publicMessage(quin, migrationOf(quin, to)))).toEqual(allStored)
    expect(await pod.db('contacts')).toEqual([])
  })

  it('is applied if the new identity has the key of the old one, as Friendica keeps it', async () => {
    const post = await addPost(pod, quin)
    const fake = { ...pod.fakePods.person('quin3@r.example'), privateKey: quin.privateKey, publicKey: quin.publicKey }
    const { id } = await addRemotePerson(pod, fake.address, { guid: fake.guid, publicKey: fake.publicKey })
    expect(await receive(pod, publicMessage(quin, migrationOf(quin, fake)))).toEqual(allStored)
    expect(await postsOf(id)).toEqual([post.guid])
  })

  it('applies two migrations of a person in any order, and rejects a third one back to the first identity', async () => {
    const quin3 = await pod.addRemotePerson('quin3@s.example')
    const post = await addPost(pod, quin)

    await receive(pod, publicMessage(quin2, migrationOf(quin2, quin3)))
    expect(await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))).toEqual(allStored)

    expect(await postsOf(quin3.id)).toEqual([post.guid])
    expect(await receive(pod, publicMessage(quin3, migrationOf(quin3, quin)))).toEqual({
      ...allStored,
      rejected: ['NotAllowed'],
    })
    expect(await Person.query(pod.db).findById(quin3.id)).toMatchObject({ closedAt: null })
  })

  it('applies an earlier move after a later one without the profile of the identity between, and finds the newest one by the oldest address', async () => {
    const quin3 = await pod.addRemotePerson('quin3b@s.example')
    await receive(pod, publicMessage(quin2, migrationOf(quin2, quin3)))
    await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))

    expect(await pod.db('profiles').where({ personId: quin2.id }).first()).toMatchObject({ firstName: null })
    await pod.db('profiles').where({ personId: quin3.id }).update({ searchable: true })
    const viewer = { userId: ann.userId, personId: ann.id, scopes: new Set(['contacts:read']) } as never
    const { items } = await searchPeople(
      pod,
      viewer,
      { filters: [], nameOrAddress: quin.address },
      { offset: 0, limit: 10 },
    )
    expect(items.map(({ address }) => address)).toEqual([quin3.address])
  })

  it('the tenth account migration in a row is rejected, and one of a deleted account', async () => {
    const people = await Promise.all(
      Array.from({ length: 11 }, (_, index) => pod.addRemotePerson(`chain${index}@c${index}.example`)),
    )
    const moves = people
      .slice(1)
      .map((to, index) => publicMessage(people[index] as FakePerson, migrationOf(people[index] as FakePerson, to)))
    for (const move of moves.slice(0, 9)) expect(await receive(pod, move)).toEqual(allStored)
    expect(await receive(pod, moves[9] as never)).toEqual({ ...allStored, rejected: ['NotAllowed'] })

    await Person.query(pod.db).findById(quin.id).patch({ closedAt: new Date() })
    const deleted = await receive(pod, publicMessage(quin2, migrationOf(quin, quin2, quin2)))
    expect(deleted).toEqual({ ...allStored, rejected: ['NotAllowed'] })
  })

  it('sends the contact also where only the local person shares', async () => {
    await addAspect(pod, ann.userId, [quin])
    await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))
    expect(await pod.db('outbox').where({ name: 'dispatch' }).pluck('data')).toEqual([
      { record: 'contact', userId: ann.userId, personId: quin2.id, sharing: true, blocking: false },
    ])
  })

  it('lets a mention of the old address reach the newest identity, once', async () => {
    await receive(
      pod,
      publicMessage(quin, migrationOf(quin, { address: ann.address, privateKey: await loadPrivateKey(pod, ann.id) })),
    )
    const text = `@{Quin; ${quin.address}} and @{Ann; ${ann.address}}`
    expect(await receive(pod, publicMessage(quin2, postBy(quin2, { text })))).toEqual(allStored)
    expect(await pod.db('mentions').pluck('person_id')).toEqual([ann.id])
    expect(await pod.db('notifications').select('userId', 'type')).toEqual([{ userId: ann.userId, type: 'mentioned' }])
  })

  it('lets a reshare name the old address of the author of its root', async () => {
    const root = await addPost(pod, quin)
    await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))
    const reshare = { ...reshareBy(carl), root_author: quin.address, root_guid: root.guid }
    expect(await receive(pod, publicMessage(carl, reshare))).toEqual(allStored)
    expect(await pod.db('posts').where({ guid: reshare.guid }).first()).toMatchObject({ rootId: root.id })
    const wrong = { ...reshareBy(carl), root_author: ben.address, root_guid: root.guid }
    expect(await receive(pod, publicMessage(carl, wrong))).toEqual({ ...allStored, rejected: ['ValidationError'] })
  })

  it('lets other pods relay comments of the old identity, which become those of the newest; its own messages are ignored', async () => {
    const root = await addPost(pod, carl)
    await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))
    const comment = commentBy(quin, root)
    expect(await receive(pod, publicMessage(carl, comment))).toEqual(allStored)
    expect(await pod.db('comments').where({ guid: comment.guid }).first()).toMatchObject({ authorId: quin2.id })
    expect(await receive(pod, publicMessage(quin, commentBy(quin, root)))).toEqual({ ...allStored, ignored: 1 })
    expect(await receive(pod, publicMessage(quin, postBy(quin, { text: 'Late' })))).toEqual({
      ...allStored,
      ignored: 1,
    })
    const forged = { ...commentBy(quin, root), author_signature: commentBy(quin2, root).author_signature }
    expect(await receive(pod, publicMessage(carl, forged))).toMatchObject({ rejected: [expect.any(String)] })
  })

  it('to a local account assigns late comments to that account', async () => {
    const root = await addPost(pod, carl)
    await receive(
      pod,
      publicMessage(quin, migrationOf(quin, { address: ann.address, privateKey: await loadPrivateKey(pod, ann.id) })),
    )
    const comment = commentBy(quin, root)
    expect(await receive(pod, publicMessage(carl, comment))).toEqual(allStored)
    expect(await pod.db('comments').where({ guid: comment.guid }).first()).toMatchObject({ authorId: ann.id })
  })

  it('to a local account shows it the local people who share with it, without a notification', async () => {
    await addAspect(pod, ben.userId, [quin])
    await pod.db('claimed_followers').insert({ userId: ann.userId, personId: ben.id })
    await receive(
      pod,
      publicMessage(quin, migrationOf(quin, { address: ann.address, privateKey: await loadPrivateKey(pod, ann.id) })),
    )
    expect(await pod.db('contacts').orderBy('userId').select('userId', 'personId', 'sharing', 'receiving')).toEqual([
      { userId: ann.userId, personId: ben.id, sharing: true, receiving: false },
      { userId: ben.userId, personId: ann.id, sharing: false, receiving: true },
    ])
    expect(await pod.db('claimed_followers')).toEqual([])
    expect(await pod.db('notifications')).toEqual([])
  })

  it('of a blocked person to a local account makes contacts active again, for both people', async () => {
    const action = { source: 'action', id: 1 } as const
    await addAspect(pod, ben.userId, [quin])
    await pod.db.transaction((transaction) => restrictPeople(transaction, action, 'block', [quin.id]))
    expect(await pod.db('contacts').select('receiving', 'inactiveReceiving')).toEqual([
      { receiving: false, inactiveReceiving: true },
    ])

    await pod.db.transaction((transaction) => movePersonRows(transaction, { from: quin.id, to: ann.id }))

    expect(await pod.db('contacts').orderBy('userId').select('userId', 'personId', 'sharing', 'receiving')).toEqual([
      { userId: ann.userId, personId: ben.id, sharing: true, receiving: false },
      { userId: ben.userId, personId: ann.id, sharing: false, receiving: true },
    ])
    await pod.db.transaction((transaction) => liftRestrictions(transaction, action))
  })

  it('is fetched when the old address is looked up, at most once a day', async () => {
    const from = pod.fakePods.person('olga@old.example')
    const linkTo = (person: FakePerson, href: string) =>
      pod.fakePods.script(`${new URL(href).host}/.well-known/webfinger`, (_request, response) => {
        const document = pod.fakePods.webFinger(person)
        const link = { rel: 'successor-version', type: 'application/magic-envelope+xml', href }
        const links = [...(document.links as readonly object[]), link]
        response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify({ ...document, links }))
      })
    const path = `old.example/fetch/account_migration/${from.guid}`
    const requests = () => pod.fakePods.requests.filter((request) => request === path).length
    linkTo(from, `https://${path}`)
    const { envelope } = publicMessage(from, migrationOf(from, quin2))
    pod.fakePods.script(path, (_request, response) => void response.end(envelope))

    const found = await discoverPerson(pod, from.address)
    await discoverPerson(pod, from.address)

    expect(requests()).toBe(1)
    const [row, ...more] = await pod.db('outbox').where({ name: 'receive-public' })
    expect([row.queue, row.payload, more]).toEqual(['inbound', envelope, []])
    expect(await receive(pod, { envelope: row.payload, acceptedAt: row.acceptedAt })).toEqual(allStored)
    expect(await pod.db('accountMigrations').select('oldPersonId', 'newPersonId')).toEqual([
      { oldPersonId: found.id, newPersonId: quin2.id },
    ])

    // A day later the moved person is closed, so that nothing is requested.
    await pod
      .db('people')
      .where({ id: found.id })
      .update({ refreshedAt: new Date(0) })
    await discoverPerson(pod, from.address)
    expect(requests()).toBe(1)
  })

  it('is not fetched from another host, nor received from another sender', async () => {
    const other = publicMessage(quin, migrationOf(quin, quin2)).envelope
    for (const [name, host, href] of [
      ['pia', 'p1.example', 'https://elsewhere.example/move'],
      ['pam', 'p2.example', 'https://p2.example/move'],
      ['pat', 'p3.example', 'https://p3.example/missing'],
    ] as const) {
      const person = pod.fakePods.person(`${name}@${host}`)
      pod.fakePods.script(`${host}/.well-known/webfinger`, (_request, response) => {
        const document = pod.fakePods.webFinger(person)
        const links = [...(document.links as readonly object[]), { rel: 'successor-version', href }]
        response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify({ ...document, links }))
      })
      pod.fakePods.script(
        href.slice('https://'.length).replace('missing', 'none'),
        (_request, response) => void response.end(other),
      )
      expect(await discoverPerson(pod, person.address)).toMatchObject({ address: person.address })
    }
    expect(pod.fakePods.requests).not.toContain('elsewhere.example/move')
    expect(await pod.db('outbox').where({ name: 'receive-public' })).toEqual([])
  })

  it('to a blocked pod changes nothing', async () => {
    const post = await addPost(pod, quin)
    await pod.db('pods').where({ host: 'r.example' }).update({ blockedAt: new Date() })
    const result = await receive(pod, publicMessage(quin, migrationOf(quin, quin2)))
    await pod.db('pods').where({ host: 'r.example' }).update({ blockedAt: null })
    expect(result).not.toEqual(allStored)
    expect(await postsOf(quin.id)).toEqual([post.guid])
    expect(await Person.query(pod.db).findById(quin.id)).toMatchObject({ closedAt: null })
  })

  it('is applied once; a repeat is ignored, and one to another identity is rejected', async () => {
    const remy = await pod.addRemotePerson('remy@r.example')

    expect(
      await receive(pod, publicMessage(quin, migrationOf(quin, quin2)), publicMessage(quin, migrationOf(quin, quin2))),
    ).toEqual({
      ...allStored,
      ignored: 1,
    })
    expect(await receive(pod, publicMessage(quin2, migrationOf(quin, quin2, quin2)))).toEqual({
      ...allStored,
      ignored: 1,
    })
    expect(await receive(pod, publicMessage(remy, migrationOf(quin, remy, remy)))).toEqual({
      ...allStored,
      rejected: ['NotAllowed'],
    })
    expect(await pod.db('accountMigrations').select('oldPersonId', 'newPersonId')).toEqual([
      { oldPersonId: quin.id, newPersonId: quin2.id },
    ])
  })

  it.each([
    [
      'with a wrong signature',
      () => ({ ...migrationOf(quin, quin2), signature: migrationOf(quin2, quin).signature }),
      'SignatureVerificationFailed',
    ],
    [
      'without a signature',
      () => ({ ...migrationOf(quin, quin2), signature: undefined }),
      'SignatureVerificationFailed',
    ],
  ])('%s is refused', async (_what, make, fault) => {
    const post = await addPost(pod, quin)

    expect(await receive(pod, publicMessage(quin, make()))).toEqual({ ...allStored, rejected: [fault] })
    expect(await postsOf(quin.id)).toEqual([post.guid])
    expect(await pod.rows('account_migrations')).toEqual([0])
  })

  it('of a local user leaves photos that moderators have hidden on this pod, where they stay hidden', async () => {
    const cleo = await addLocalUser(pod, `cleo${newGuid().slice(0, 6)}`)
    const from = { address: cleo.address, privateKey: await loadPrivateKey(pod, cleo.id) }
    const photo = { authorId: cleo.id, public: false }
    await pod.db('photos').insert([
      { ...photo, guid: newGuid(), name: 'hidden.jpg', publicBeforeHiding: true },
      { ...photo, guid: newGuid(), name: 'shown.jpg' },
    ])
    const entity = { ...migrationOf(from, quin2, quin2), remote_photo_path: 'https://r.example/up/' }

    expect(await receive(pod, publicMessage(quin2, entity))).toEqual(allStored)

    expect(await pod.db('photos').orderBy('name').select('name', 'remotePath')).toEqual([
      { name: 'hidden.jpg', remotePath: null },
      { name: 'shown.jpg', remotePath: 'https://r.example/up/' },
    ])
    expect(await findPictureState(pod.db, ['hidden.jpg'], 90)).toMatchObject({ isHidden: true })
  })

  it('before a later one of the new identity leads to the photos where the later one has put them', async () => {
    const quin3 = await pod.addRemotePerson('quin3c@s.example')
    await pod
      .db('photos')
      .insert({ guid: newGuid(), authorId: quin.id, name: 'a.png', remotePath: 'https://q.example/' })
    const to = (path: string) => ({ remote_photo_path: path })
    await receive(pod, publicMessage(quin2, { ...migrationOf(quin2, quin3), ...to('https://s.example/up/') }))
    await receive(pod, publicMessage(quin, { ...migrationOf(quin, quin2), ...to('https://r.example/up/') }))
    expect(await pod.db('photos').pluck('remote_path')).toEqual(['https://s.example/up/'])
  })

  it('of a local user without photos: a later message of the new pod about a photo notes its file here', async () => {
    const cleo = await addLocalUser(pod, `cleo${newGuid().slice(0, 6)}`)
    const from = { address: cleo.address, privateKey: await loadPrivateKey(pod, cleo.id) }
    const guid = newGuid()
    await pod.db('photos').insert({ guid, authorId: cleo.id, name: 'late.jpg', public: true })
    await receive(pod, publicMessage(quin2, migrationOf(from, quin2, quin2)))
    expect(await pod.rows('moved_photo_files')).toEqual([0])
    const place = { remote_photo_path: 'https://r.example/up/', remote_photo_name: 'new.jpg' }
    expect(await receive(pod, publicMessage(quin2, photoBy(quin2, { guid, ...place })))).toEqual(allStored)

    expect(await pod.db('photos').select('name', 'remotePath')).toEqual([
      { name: 'new.jpg', remotePath: 'https://r.example/up/' },
    ])
    expect(await pod.db('moved_photo_files').select('name', 'deletedAt')).toEqual([
      { name: 'late.jpg', deletedAt: null },
    ])
  })

  it('of a local user locks the account and ends its contacts', async () => {
    const cleo = await addLocalUser(pod, `cleo${newGuid().slice(0, 6)}`)
    const key = await loadPrivateKey(pod, cleo.id)
    const post = await addPost(pod, cleo)
    await addAspect(pod, cleo.userId, [quin])
    const from = { address: cleo.address, privateKey: key }

    expect(await receive(pod, publicMessage(quin2, migrationOf(from, quin2, quin2)))).toEqual(allStored)

    expect(await postsOf(quin2.id)).toEqual([post.guid])
    expect(await User.query(pod.db).findById(cleo.userId)).toMatchObject({ lockedAt: expect.any(Date), closedAt: null })
    expect(await Person.query(pod.db).findById(cleo.id)).toMatchObject({ closedAt: expect.any(Date) })
    expect(await pod.db('contacts').where({ userId: cleo.userId })).toEqual([])
  })

  it('of a locked user leaves the account locked when the time of the lock is over', async () => {
    const cleo = await addLocalUser(pod, `cleo${newGuid().slice(0, 6)}`)
    const from = { address: cleo.address, privateKey: await loadPrivateKey(pod, cleo.id) }
    const until = new Date(pod.now().getTime() + 60_000)
    await suspendAccount(pod, COMMAND_ACTOR, cleo.guid, { reason: 'Spam', until })
    expect(await receive(pod, publicMessage(quin2, migrationOf(from, quin2, quin2)))).toEqual(allStored)

    expect(await endTemporaryActions({ ...pod, now: () => until })).toBe(1)

    expect(await User.query(pod.db).findById(cleo.userId)).toMatchObject({ lockedAt: expect.any(Date) })
  })
})

describe('a private message to a closed account', () => {
  async function contactTo(recipient: LocalUser) {
    return privateMessage(quin, recipient, {
      type: 'contact',
      author: quin.address,
      recipient: recipient.address,
      following: true,
      sharing: true,
      blocking: false,
    })
  }
  const sent = () =>
    pod
      .db('outboundMessages')
      .join('deliveries', 'deliveries.messageId', 'outboundMessages.id')
      .join('pods', 'pods.id', 'deliveries.podId')
      .select('record', 'senderId', 'public', 'host', 'deliveries.personId')

  it('is answered once, with a public account deletion', async () => {
    const dora = await addLocalUser(pod, `dora${newGuid().slice(0, 6)}`)
    await Person.query(pod.db).findById(dora.id).patch({ closedAt: new Date() })

    expect(await receive(pod, await contactTo(dora))).toEqual({ ...allStored, rejected: ['RecipientClosed'] })
    expect(await receive(pod, await contactTo(dora))).toEqual({ ...allStored, rejected: ['RecipientClosed'] })

    expect(await sent()).toEqual([
      { record: 'account_deletion', senderId: dora.id, public: true, host: 'q.example', personId: null },
    ])
    expect(await pod.rows('contacts')).toEqual([0])
  })

  it('is answered with the account migration that moved it', async () => {
    const emil = await addLocalUser(pod, `emil${newGuid().slice(0, 6)}`)
    const from = { address: emil.address, privateKey: await loadPrivateKey(pod, emil.id) }
    const stored = migrationOf(from, quin2)
    await receive(pod, publicMessage({ ...quin, ...from }, stored))
    await pod.db('outboundMessages').delete()

    expect(await receive(pod, await contactTo(emil))).toEqual({ ...allStored, rejected: ['RecipientClosed'] })

    expect(await sent()).toMatchObject([{ record: 'account_migration', senderId: emil.id, host: 'q.example' }])
    const [message] = await pod.db('outboundMessages')
    expect(message.entity).toContain(`<author>${emil.address}</author>`)
    expect(message.entity).toContain(`<author>${quin2.address}</author>`)
    expect(message.entity).toContain(`<signature>${stored.signature}</signature>`)
  })

  it('is not answered with a migration that only the new pod can send', async () => {
    const fay = await addLocalUser(pod, `fay${newGuid().slice(0, 6)}`)
    const from = { address: fay.address, privateKey: await loadPrivateKey(pod, fay.id) }
    await receive(pod, publicMessage(quin2, migrationOf(from, quin2, quin2)))

    expect(await receive(pod, await contactTo(fay))).toEqual({ ...allStored, rejected: ['RecipientClosed'] })

    expect(await sent()).toEqual([])
  })
})
