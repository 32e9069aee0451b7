import { createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { changeProfile } from '../../../src/domain/people/profiles.js'
import { changeAltText } from '../../../src/domain/photos/change-photo.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { dispatchInOrder } from '../../../src/federation/outbound/dispatch.js'
import { planDispatch } from '../../../src/federation/outbound/dispatch-plan.js'
import { NewerVersionNeeded } from '../../../src/jobs/job-version.js'
import { AlreadyDone, loadJob } from '../../../src/jobs/outbox/load-job.js'
import { Block, Contact } from '../../../src/persistence/models/contact.js'
import { Mention } from '../../../src/persistence/models/mention.js'
import { Participation } from '../../../src/persistence/models/participation.js'
import { Person, Profile } from '../../../src/persistence/models/person.js'
import { Poll } from '../../../src/persistence/models/poll.js'
import type { Post } from '../../../src/persistence/models/post.js'
import { findDeliveryReports } from '../../../src/persistence/outbound/delivery-report.js'
import { emptyDeliveredPosts } from '../../../src/persistence/retention/expired-rows.js'
import { readEntity } from '../../../src/protocol/entities/entity-xml.js'
import type { Relayable } from '../../../src/protocol/entities/relayables.js'
import { verifyRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import { readXml } from '../../../src/protocol/xml/xml.js'
import { addPost, showPost } from '../../support/databases/rows.js'
import { dispatchNow, dispatchWork, sentAbout } from '../../support/federation/outbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson, hostOf } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let test: TestPod
let pod: TestPod['pod']
let ann: Viewer
let ben: Viewer
/** Remote people: quin and quinta on one pod, remy on another. */
let quin: Person
let quinta: Person
let remy: Person

beforeAll(async () => {
  test = await buildPod()
  pod = test.pod
  const people = await test.people('ann', 'ben')
  ann = await viewerOf(pod, people.ann)
  ben = await viewerOf(pod, people.ben)
  quin = await addRemotePerson(pod, 'quin@q.example')
  quinta = await addRemotePerson(pod, 'quinta@q.example')
  remy = await addRemotePerson(pod, 'remy@r.example')
})
afterAll(() => test.close())

let remotePeople = 0
function newRemotePerson(name = 'somebody'): Promise<Person> {
  remotePeople += 1
  return addRemotePerson(pod, `${name}@s${remotePeople}.example`)
}

function xmlOf(entity: string) {
  return readXml(entity, 'InvalidPayload')
}

function hold({ id }: Post, personIds: readonly number[]): Promise<unknown> {
  return pod.db.transaction((transaction) => Participation.subscribe(transaction, id, personIds))
}

/** What was dispatched about a record: one envelope. */
async function sentOnce(guid: string) {
  const [sent, ...others] = await sentAbout(pod, guid)
  expect(others).toEqual([])
  if (sent === undefined) throw new Error('Nothing was written.')
  return { ...sent, read: readEntity(xmlOf(sent.entity), new Date()) }
}

async function sentRelayable(guid: string) {
  const sent = await sentOnce(guid)
  return { ...sent, read: sent.read as Relayable }
}

const publish = (text = 'Good morning') => publishPost(pod, ann, { text, public: true })

describe('a post', () => {
  it('goes once to each pod of its readers', async () => {
    const [sharer, follower, mentioned, participant, resharer, closed] = await Promise.all([
      newRemotePerson(),
      newRemotePerson(),
      newRemotePerson('mentioned'),
      newRemotePerson(),
      newRemotePerson(),
      newRemotePerson(),
    ])
    const neighbour = await addRemotePerson(pod, `neighbour@${hostOf(sharer)}`)
    for (const [person, flags] of [
      [sharer, { sharing: true }],
      [neighbour, { sharing: true }],
      [follower, { receiving: true }],
      [closed, { sharing: true }],
    ] as const) {
      await Contact.query(pod.db).insert({ userId: ann.userId, personId: person.id, ...flags })
    }
    await Contact.query(pod.db).insert({ userId: ann.userId, personId: ben.personId, receiving: true })
    await Person.query(pod.db).findById(closed.id).patch({ closedAt: new Date() })
    const post = await publish(`Hello @{${mentioned.address}}`)
    await hold(post, [participant.id, ben.personId])
    await addPost(pod, resharer, { type: 'Reshare', rootId: post.id, text: '' })

    await dispatchNow(pod, { record: 'post', guid: post.guid })

    const sent = await sentOnce(post.guid)
    expect(sent).toMatchObject({ verb: 'create', public: true, senderId: ann.personId })
    expect(sent.read).toMatchObject({ type: 'status_message', author: 'ann@pod.example', text: post.text })
    expect(sent.to).toEqual([sharer, follower, mentioned, participant, resharer].map(hostOf).sort())
    await Contact.query(pod.db).where({ userId: ann.userId }).delete()
  })

  it('goes to five people on one pod and two on another as one delivery for each pod, or as seven in private', async () => {
    const q = [
      quin,
      quinta,
      ...(await Promise.all(['q3', 'q4', 'q5'].map((name) => addRemotePerson(pod, `${name}@q.example`)))),
    ]
    const r = [remy, await addRemotePerson(pod, 'r2@r.example')]
    const aspectId = await addAspect(pod, ben.userId, [...q, ...r])
    const forAll = await publishPost(pod, ben, { text: 'Hello', public: true })
    const forSome = await publishPost(pod, ben, { text: 'Hello', public: false, aspectIds: [aspectId] })

    await dispatchNow(pod, { record: 'post', guid: forAll.guid })
    await dispatchNow(pod, { record: 'post', guid: forSome.guid })

    expect((await sentOnce(forAll.guid)).to).toEqual(['q.example', 'r.example'])
    const sent = await sentOnce(forSome.guid)
    expect(sent).toMatchObject({ public: false, to: [...q, ...r].map(({ address }) => address).sort() })
    await Contact.query(pod.db).where({ userId: ben.userId }).delete()
  })

  it('goes only to its aspects when it is private', async () => {
    const [inside, outside, participant] = await Promise.all([newRemotePerson(), newRemotePerson(), newRemotePerson()])
    const aspectId = await addAspect(pod, ann.userId, [inside])
    await addAspect(pod, ann.userId, [outside])
    const post = await publishPost(pod, ann, { text: 'Psst', public: false, aspectIds: [aspectId] })
    await hold(post, [participant.id])
    await Mention.query(pod.db).insert({ personId: outside.id, postId: post.id, createdAt: post.createdAt })

    await dispatchNow(pod, { record: 'post', guid: post.guid })

    expect((await sentOnce(post.guid)).to).toEqual([inside.address])
    await Contact.query(pod.db).where({ userId: ann.userId }).delete()
  })

  it('goes to the author of its root, and to the people that the root mentions', async () => {
    const [author, named] = await Promise.all([newRemotePerson(), newRemotePerson()])
    const root = await addPost(pod, author)
    await Mention.query(pod.db).insert({ personId: named.id, postId: root.id, createdAt: root.createdAt })
    const reshare = await createReshare(pod, ann, root.guid)

    await dispatchNow(pod, { record: 'post', guid: reshare.guid })

    const sent = await sentOnce(reshare.guid)
    expect(sent.read).toMatchObject({ type: 'reshare', root_author: author.address, root_guid: root.guid })
    expect(sent).toMatchObject({ public: true, senderId: ann.personId, to: [author, named].map(hostOf).sort() })
  })

  it('of a remote author is not dispatched, nor one without remote readers', async () => {
    const theirs = await addPost(pod, remy)
    const unread = await publish()

    await dispatchNow(pod, { record: 'post', guid: theirs.guid })
    await dispatchNow(pod, { record: 'post', guid: unread.guid })

    expect([...(await sentAbout(pod, theirs.guid)), ...(await sentAbout(pod, unread.guid))]).toEqual([])
  })
})

describe('a job', () => {
  it('that comes twice writes nothing the second time', async () => {
    const author = await newRemotePerson()
    const root = await addPost(pod, author)
    const reshare = await createReshare(pod, ann, root.guid)
    const work = await dispatchWork(pod, { record: 'post', guid: reshare.guid })

    await dispatchInOrder(pod, work)
    await pod.db('deliveries').delete() // as if it had arrived

    await expect(dispatchInOrder(pod, work)).rejects.toThrow(AlreadyDone)
    expect((await sentOnce(reshare.guid)).to).toEqual([])
  })

  it('for a deleted record does nothing', async () => {
    const work = await dispatchWork(pod, { record: 'comment', guid: newGuid() })

    await dispatchInOrder(pod, work)

    await expect(dispatchInOrder(pod, work)).rejects.toThrow(AlreadyDone)
  })

  it('waits for a deletion that is under way, and then has nothing to do', async () => {
    const root = await addPost(pod, await newRemotePerson())
    const reshare = await createReshare(pod, ann, root.guid)
    const deletion = await pod.db.transaction()
    await deletion('posts').where({ id: reshare.id }).delete()

    const dispatching = dispatchNow(pod, { record: 'post', guid: reshare.guid })
    await vi.waitFor(async () => {
      const { rows } = await pod.db.raw(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      expect(rows).toHaveLength(1)
    })
    await deletion.commit()
    await dispatching

    expect(await sentAbout(pod, reshare.guid)).toEqual([])
  })
})

describe('the report about a post', () => {
  const reportOf = async (guid: string) => (await findDeliveryReports(pod.db, 'post', guid))[0]

  it('names the pods that were asleep or blocked, also if no pod gets the post', async () => {
    const [awake, asleep, blocked] = await Promise.all([newRemotePerson(), newRemotePerson(), newRemotePerson()])
    await pod
      .db('pods')
      .where({ id: asleep.podId })
      .update({ offlineSince: pod.db.raw(`now() - interval '15 days'`) })
    await pod.db('pods').where({ id: blocked.podId }).update({ blockedAt: new Date() })
    const skipped = [
      { host: hostOf(asleep), port: 443, reason: 'asleep' },
      { host: hostOf(blocked), port: 443, reason: 'blocked' },
    ]

    const { cora: account } = await test.people('cora')
    const cora = await viewerOf(pod, account)
    const publishAsCora = () => publishPost(pod, cora, { text: 'Good morning', public: true })
    const all = await publishAsCora()
    await hold(all, [awake.id, asleep.id, blocked.id])
    await dispatchNow(pod, { record: 'post', guid: all.guid })
    expect(await reportOf(all.guid)).toMatchObject({ sentTo: 1, arrived: 0, arrivedAt: [], skipped })

    const none = await publishAsCora()
    await hold(none, [asleep.id, blocked.id])
    await dispatchNow(pod, { record: 'post', guid: none.guid })
    expect(await reportOf(none.guid)).toMatchObject({ sentTo: 0, missing: [], skipped })
  })

  it('outlives the text of the post, which a repeated dispatch fills in again', async () => {
    const [one, two] = [await newRemotePerson(), await newRemotePerson()]
    const { dora } = await test.people('dora')
    const post = await publishPost(pod, await viewerOf(pod, dora), { text: 'Good evening', public: true })
    await hold(post, [one.id])
    await dispatchNow(pod, { record: 'post', guid: post.guid })
    const message = () => pod.db('outbound_messages').where({ record: 'post', guid: post.guid })
    const [{ id: messageId, entity }] = await message()
    await pod.db('deliveries').where({ messageId }).delete()
    await message().update({ createdAt: pod.db.raw(`now() - interval '2 days'`) })
    expect(await emptyDeliveredPosts(pod.db, 1_000)).toBe(1)
    expect(await message()).toMatchObject([{ entity: '', envelope: null, sentTo: 1 }])

    await hold(post, [one.id, two.id])
    await dispatchNow(pod, { record: 'post', guid: post.guid })
    expect(await message()).toMatchObject([{ entity, sentTo: 3 }])
    expect(await emptyDeliveredPosts(pod.db, 1_000)).toBe(0)
  })

  it('is not written for comments', async () => {
    const blocked = await newRemotePerson()
    await pod.db('pods').where({ id: blocked.podId }).update({ blockedAt: new Date() })
    const post = await publish()
    await hold(post, [blocked.id])
    const comment = await createComment(pod, ben, { postGuid: post.guid, text: 'Hello' })
    await dispatchNow(pod, { record: 'comment', guid: comment.guid })
    expect(await sentAbout(pod, comment.guid)).toEqual([])
  })
})

describe('what is said about a post', () => {
  async function keyOf(viewer: Viewer) {
    const { publicKey } = await Person.query(pod.db).findById(viewer.personId).throwIfNotFound()
    return createPublicKey(publicKey)
  }

  /** A post of ann that is visible to people on the pods of quin and remy. */
  async function readPost(): Promise<Post> {
    const post = await publish()
    await hold(post, [quin.id, remy.id])
    return post
  }

  it('a relayable on a remote post goes only to the pod of the post author, signed by its own author', async () => {
    const post = await addPost(pod, remy)
    await hold(post, [quin.id])
    const comment = await createComment(pod, ann, { postGuid: post.guid, text: `Hello @{${quin.address}}` })

    await dispatchNow(pod, { record: 'comment', guid: comment.guid })

    const { read, ...sent } = await sentRelayable(comment.guid)
    expect(sent).toMatchObject({ public: true, senderId: ann.personId, to: ['r.example'] })
    const order = ['author', 'guid', 'parent_guid', 'text', 'created_at', 'author_signature']
    expect(xmlOf(sent.entity).children.map(({ name }) => name)).toEqual(order)
    expect(verifyRelayable(read, await keyOf(ann))).toBe(true)
  })

  it('a relayable on a private remote post goes only to the post author', async () => {
    const post = await addPost(pod, remy, { public: false })
    await showPost(pod, post, ann)
    const comment = await createComment(pod, ann, { postGuid: post.guid, text: 'Psst' })

    await dispatchNow(pod, { record: 'comment', guid: comment.guid })

    expect(await sentOnce(comment.guid)).toMatchObject({ public: false, to: [remy.address] })
  })

  it('a relayable on a local post goes to all readers of the post, signed by the post author', async () => {
    const post = await readPost()
    const comment = await createComment(pod, ben, { postGuid: post.guid, text: 'Hello' })

    await dispatchNow(pod, { record: 'comment', guid: comment.guid })

    const { read, ...sent } = await sentRelayable(comment.guid)
    expect(sent).toMatchObject({ public: true, senderId: ann.personId, to: ['q.example', 'r.example'] })
    expect(verifyRelayable(read, await keyOf(ben))).toBe(true)
  })

  it('a relayable by the author of the post needs no signature of its own', async () => {
    const post = await readPost()
    const comment = await createComment(pod, ann, { postGuid: post.guid, text: 'Hello' })

    await dispatchNow(pod, { record: 'comment', guid: comment.guid })

    const { entity } = await sentOnce(comment.guid)
    expect(entity).not.toContain('signature')
  })

  /** As it is kept of a comment by quin: another order and unknown elements, one of them empty. */
  async function receiveMessages(
    post: Post,
    text = '  a\r\nb; <c> ',
  ): Promise<{ guid: string; elements: [string, string][] }> {
    const guid = newGuid()
    const elements: [string, string][] = [
      ['guid', guid],
      ['mood', ''],
      ['text', text],
      ['author', quin.address],
      ['thread_parent_guid', 'xyz'],
      ['parent_guid', post.guid],
      ['created_at', '2020-01-02T03:04:05Z'],
    ]
    const [comment] = await pod
      .db('comments')
      .insert({
        guid,
        postId: post.id,
        authorId: quin.id,
        text,
        authorSignature: 'c2lnbmVk\r\nIGJ5IHF1aW4=',
        signedElements: JSON.stringify(elements),
      })
      .returning('id')
    await Mention.query(pod.db).insert({ personId: (await addNamedPerson()).id, commentId: comment.id })
    await Mention.query(pod.db).insert({ personId: quinta.id, commentId: comment.id })
    return { guid, elements }
  }

  let whoIsNamed: Promise<Person> | undefined
  function addNamedPerson(): Promise<Person> {
    whoIsNamed ??= newRemotePerson('named')
    return whoIsNamed
  }

  it('is relayed exactly as it was signed, to the other readers and to mentioned people, not back to its pod', async () => {
    const post = await readPost()
    const { guid, elements } = await receiveMessages(post)

    await dispatchNow(pod, { record: 'comment', guid })

    const { entity, ...sent } = await sentOnce(guid)
    expect(sent).toMatchObject({
      public: true,
      senderId: ann.personId,
      to: ['r.example', hostOf(await addNamedPerson())].sort(),
    })
    const written = xmlOf(entity).children.map(({ name, text }) => [name, text])
    expect(written).toEqual([...elements, ['author_signature', 'c2lnbmVk\r\nIGJ5IHF1aW4=']])
  })

  it('a relayable on a private post is relayed only to the readers of the post, even if it mentions others', async () => {
    const aspectId = await addAspect(pod, ann.userId, [quin, quinta, remy])
    const post = await publishPost(pod, ann, { text: 'Psst', public: false, aspectIds: [aspectId] })
    const { guid } = await receiveMessages(post)

    await dispatchNow(pod, { record: 'comment', guid })

    expect(await sentOnce(guid)).toMatchObject({ public: false, to: [remy.address] })
    await Contact.query(pod.db).where({ userId: ann.userId }).delete()
  })

  it('a relayable of a remote author on a remote post is not dispatched', async () => {
    const { guid } = await receiveMessages(await addPost(pod, remy))

    await dispatchNow(pod, { record: 'comment', guid })

    expect(await sentAbout(pod, guid)).toEqual([])
  })

  it('may be a like of a comment: it goes where the post went', async () => {
    const post = await readPost()
    const comment = await createComment(pod, ben, { postGuid: post.guid, text: 'Hello' })
    const likes = [newGuid(), newGuid()] as const
    await pod.db('likes').insert([
      { guid: likes[0], authorId: ann.personId, commentId: comment.id },
      { guid: likes[1], authorId: ann.personId, postId: post.id },
    ])

    for (const guid of likes) await dispatchNow(pod, { record: 'like', guid })

    const [ofComment, ofPost] = await Promise.all(likes.map(sentOnce))
    expect(ofComment).toMatchObject({ senderId: ann.personId, to: ['q.example', 'r.example'] })
    expect(ofComment?.read).toMatchObject({
      type: 'like',
      parent_type: 'Comment',
      parent_guid: comment.guid,
      positive: true,
    })
    expect(ofPost?.read).toMatchObject({ parent_type: 'Post', parent_guid: post.guid })
  })

  it('a vote is sent to the people who have the post', async () => {
    const post = await publishPost(pod, ann, {
      text: 'Tea?',
      public: true,
      poll: { question: 'Tea?', answers: ['Yes', 'No'] },
    })
    await hold(post, [remy.id])
    const poll = await Poll.query(pod.db).findOne({ postId: post.id }).withGraphFetched('answers').throwIfNotFound()
    const [answer] = poll.answers ?? []
    const guid = newGuid()
    await pod
      .db('pollParticipations')
      .insert({ guid, pollId: poll.id, pollAnswerId: answer?.id, authorId: ann.personId })

    await dispatchNow(pod, { record: 'poll_participation', guid })

    const { read, to } = await sentOnce(guid)
    expect(to).toEqual(['r.example'])
    expect(read).toMatchObject({ type: 'poll_participation', parent_guid: poll.guid, poll_answer_guid: answer?.guid })
  })
})

describe('a participation', () => {
  it('is sent to the author of the post only, even if the post is public', async () => {
    const post = await addPost(pod, remy)
    const { guid } = await Participation.query(pod.db).insertAndFetch({
      guid: newGuid(),
      postId: post.id,
      authorId: ann.personId,
    })

    await dispatchNow(pod, { record: 'participation', guid })

    const { read, ...sent } = await sentOnce(guid)
    expect(sent).toMatchObject({ public: false, senderId: ann.personId, to: [remy.address] })
    expect(read).toMatchObject({ type: 'participation', parent_guid: post.guid, parent_type: 'Post' })
  })

  it('of a remote person is not dispatched', async () => {
    const post = await publish()
    const { guid } = await Participation.query(pod.db).insertAndFetch({
      guid: newGuid(),
      postId: post.id,
      authorId: remy.id,
    })

    await dispatchNow(pod, { record: 'participation', guid })

    expect(await sentAbout(pod, guid)).toEqual([])
  })
})

describe('a local person', () => {
  const fields = {
    firstName: 'Ann',
    bio: 'Drinks tea',
    birthday: '1990-02-03',
    imageUrl: '/uploads/images/ann.png',
    tags: ['tea', 'rain'],
  }

  it('sends their profile to all contacts, public or encrypted for each', async () => {
    const people = await Promise.all([newRemotePerson(), newRemotePerson()])
    const [sharer, follower] = people
    await Contact.query(pod.db).insert({ userId: ann.userId, personId: sharer.id, sharing: true })
    await Contact.query(pod.db).insert({ userId: ann.userId, personId: follower.id, receiving: true })
    const { guid } = await Person.query(pod.db).findById(ann.personId).throwIfNotFound()
    await Profile.query(pod.db).findById(ann.personId).patch(fields)

    await dispatchNow(pod, { record: 'profile', personId: ann.personId })
    await Profile.query(pod.db).findById(ann.personId).patch({ publicDetails: true })
    await dispatchNow(pod, { record: 'profile', personId: ann.personId })
    await dispatchNow(pod, { record: 'profile', personId: ann.personId, to: remy.id })

    const sent = await sentAbout(pod, guid)
    expect(sent.map(({ public: isPublic, to }) => ({ isPublic, to }))).toEqual([
      { isPublic: false, to: people.map(({ address }) => address).sort() },
      { isPublic: true, to: people.map(hostOf).sort() },
      { isPublic: true, to: ['r.example'] },
    ])
    const read = sent.map(({ entity }) => readEntity(xmlOf(entity), new Date()))
    expect(read[0]).toMatchObject({
      type: 'profile',
      author: 'ann@pod.example',
      first_name: 'Ann',
      bio: 'Drinks tea',
      birthday: '1990-02-03',
      image_url: 'https://pod.example/uploads/images/ann.png',
      tag_string: '#tea #rain',
      searchable: true,
      public: false,
    })
    expect(read[0]).not.toHaveProperty('last_name')
    expect(read[1]).toMatchObject({ public: true })
    await Contact.query(pod.db).where({ userId: ann.userId }).delete()
  })

  it.each([
    [
      { sharing: true, blocking: false },
      { following: true, sharing: true, blocking: false },
    ],
    [
      { sharing: false, blocking: false },
      { following: false, sharing: false, blocking: false },
    ],
    [
      { sharing: false, blocking: true },
      { following: false, sharing: false, blocking: true },
    ],
  ])('sends the state of a contact to a remote person: %j', async (state, told) => {
    const person = await newRemotePerson()
    await setBetween(person, state)

    await dispatchNow(pod, { record: 'contact', userId: ann.userId, personId: person.id, ...state })

    const { read, ...sent } = await sentOnce(person.guid)
    expect(sent).toMatchObject({ public: false, senderId: ann.personId, to: [person.address] })
    expect(read).toEqual({ type: 'contact', author: 'ann@pod.example', recipient: person.address, ...told })
  })

  it('sends each change of a contact, and none to local people', async () => {
    const person = await newRemotePerson()
    const { guid } = await Person.query(pod.db).findById(ben.personId).throwIfNotFound()
    const between = { record: 'contact', userId: ann.userId, personId: person.id } as const

    for (const sharing of [true, false]) {
      await setBetween(person, { sharing, blocking: false })
      await dispatchNow(pod, { ...between, sharing, blocking: false })
    }
    await dispatchNow(pod, { ...between, personId: ben.personId, sharing: false, blocking: false })

    expect(await sentAbout(pod, person.guid)).toHaveLength(2)
    expect(await sentAbout(pod, guid)).toEqual([])
  })

  it('sends no outdated state of a contact after a newer one', async () => {
    const person = await newRemotePerson()
    const between = { record: 'contact', userId: ann.userId, personId: person.id, blocking: false } as const
    await setBetween(person, { sharing: false, blocking: false })

    await dispatchNow(pod, { ...between, sharing: false })
    await dispatchNow(pod, { ...between, sharing: true })
    await dispatchNow(pod, { ...between, sharing: false, blocking: true })

    expect((await sentOnce(person.guid)).read).toMatchObject({ sharing: false, blocking: false })
  })

  it('locks the record until its message is written, so that no newer one is sent before it', async () => {
    const person = await newRemotePerson()
    await Contact.query(pod.db).insert({ userId: ann.userId, personId: person.id, receiving: true })
    const telling = await pod.db.transaction()
    await planDispatch(pod, telling, { record: 'profile', personId: ann.personId })
    let isChanged = false

    const change = changeProfile(pod, ann, { bio: 'Drinks coffee' }).then(() => {
      isChanged = true
    })
    await vi.waitFor(async () => expect(await waitingForLocks()).toBe(1), { interval: 10 })
    expect(isChanged).toBe(false)
    await telling.commit()
    await change

    const between = { record: 'contact', userId: ann.userId, personId: person.id, blocking: false } as const
    const first = await pod.db.transaction()
    await planDispatch(pod, first, { ...between, sharing: true })
    const second = dispatchNow(pod, { ...between, sharing: true })
    await vi.waitFor(async () => expect(await waitingForLocks()).toBe(1), { interval: 10 })
    await first.commit()
    await second
    await Contact.query(pod.db).where({ userId: ann.userId }).delete()
  })

  async function waitingForLocks(): Promise<number> {
    const { rows } = await pod.db.raw(
      `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return Number(rows[0].count)
  }

  async function setBetween(
    { id: personId }: Person,
    { sharing, blocking }: { readonly sharing: boolean; readonly blocking: boolean },
  ): Promise<void> {
    const pair = { userId: ann.userId, personId }
    await Contact.query(pod.db).where(pair).delete()
    if (sharing) await Contact.query(pod.db).insert({ ...pair, receiving: true })
    if (blocking) await Block.query(pod.db).insert(pair)
  }

  it('writes to the other participants of a conversation, and only what is their own', async () => {
    const guids = { conversation: newGuid(), first: newGuid(), second: newGuid(), answer: newGuid() }
    const [conversation] = await pod
      .db('conversations')
      .insert({ guid: guids.conversation, authorId: ann.personId, subject: 'Tea' })
      .returning(['id', 'createdAt'])
    const { id: conversationId, createdAt } = conversation
    for (const personId of [ann.personId, ben.personId, quin.id, remy.id]) {
      await pod.db('conversationVisibilities').insert({ conversationId, personId, createdAt, updatedAt: createdAt })
    }
    await pod.db('messages').insert([
      { guid: guids.first, conversationId, authorId: ann.personId, text: ' Tea? ', createdAt: '2024-01-01T00:00:00Z' },
      { guid: guids.second, conversationId, authorId: ann.personId, text: 'Now?', createdAt: '2024-01-01T00:00:01Z' },
      { guid: guids.answer, conversationId, authorId: remy.id, text: 'Yes', createdAt: '2024-01-01T00:00:02Z' },
    ])

    await dispatchNow(pod, { record: 'conversation', guid: guids.conversation })
    await dispatchNow(pod, { record: 'message', guid: guids.second })
    await dispatchNow(pod, { record: 'message', guid: guids.answer })

    const begun = await sentOnce(guids.conversation)
    const to = [quin.address, remy.address]
    expect(begun).toMatchObject({ public: false, senderId: ann.personId, to })
    expect(begun.read).toMatchObject({
      type: 'conversation',
      subject: 'Tea',
      participants: ['ann@pod.example', 'ben@pod.example', ...to],
      messages: [{ guid: guids.first, text: ' Tea? ', conversation_guid: guids.conversation }],
    })
    const later = await sentOnce(guids.second)
    expect(later).toMatchObject({ public: false, senderId: ann.personId, to })
    expect(later.read).toMatchObject({ type: 'message', text: 'Now?', conversation_guid: guids.conversation })
    expect(await sentAbout(pod, guids.answer)).toEqual([])
  })

  it('sends a photo without a post to the aspects it was shared with', async () => {
    const [inside, outside] = await Promise.all([newRemotePerson(), newRemotePerson()])
    const aspectId = await addAspect(pod, ann.userId, [inside])
    await addAspect(pod, ann.userId, [outside])
    const guids = [newGuid(), newGuid(), newGuid()] as const
    const photo = { authorId: ann.personId, name: 'tea.jpg', pending: false, public: false }
    const [shared] = await pod
      .db('photos')
      .insert([
        { ...photo, guid: guids[0] },
        { ...photo, guid: guids[1], public: true },
        { ...photo, guid: guids[2], public: true, pending: true },
      ])
      .returning('id')
    await pod.db('photoAspects').insert({ photoId: shared.id, aspectId })

    for (const guid of guids) await dispatchNow(pod, { record: 'photo', guid })

    const forSome = await sentOnce(guids[0])
    expect(forSome).toMatchObject({ public: false, senderId: ann.personId, to: [inside.address] })
    expect(forSome.read).toMatchObject({
      type: 'photo',
      remote_photo_path: 'https://pod.example/uploads/images/',
      remote_photo_name: 'tea.jpg',
    })
    expect(await sentOnce(guids[1])).toMatchObject({ public: true, to: [inside, outside].map(hostOf).sort() })
    expect(await sentAbout(pod, guids[2])).toEqual([])
  })
})

it('a photo with a new description is sent again, and the former one no more', async () => {
  const reader = await newRemotePerson()
  await addAspect(pod, ann.userId, [reader])
  const guid = newGuid()
  await pod.db('photos').insert({ guid, authorId: ann.personId, name: 'tea.jpg', pending: false, public: true })
  await dispatchNow(pod, { record: 'photo', guid })
  await changeAltText(pod, ann, { guid, altText: 'A cup of tea' })
  await dispatchNow(pod, { record: 'photo', guid })

  const sent = await sentAbout(pod, guid)
  expect(sent.map(({ entity }) => readEntity(xmlOf(entity), new Date()))).toMatchObject([
    { type: 'photo', text: 'A cup of tea' },
  ])
})

describe('the order of dispatches', () => {
  const rowsOfSender = (viewer: Viewer) =>
    pod.db('outbox').where({ senderId: viewer.personId, name: 'dispatch' }).orderBy('id').select('id', 'data')
  const dispatchRow = async (outboxId: number) => {
    const work = await loadJob(pod.db, { outboxId })
    if (work === undefined) throw new Error('The outbox row is gone.')
    await dispatchInOrder(pod, work as Parameters<typeof dispatchInOrder>[1])
  }
  const sentGuids = async (...guids: readonly string[]) =>
    pod.db('outboundMessages').whereIn('guid', guids).orderBy('id').pluck('guid')
  const publish = (viewer: Viewer) => publishPost(pod, viewer, { text: 'One of several', public: true })

  beforeEach(() => pod.db('outbox').delete())

  it('is that of writing, whichever job comes first', async () => {
    const posts = [await publish(ann), await publish(ann), await publish(ann)]
    const others = await publish(ben)
    const guids = posts.map(({ guid }) => guid)
    const [first, second, third] = await rowsOfSender(ann)

    await Promise.all([third, second].map((row) => dispatchRow(row?.id)))

    expect(await sentGuids(...guids, others.guid)).toEqual(guids)
    expect(await loadJob(pod.db, { outboxId: first?.id })).toBeUndefined()
    expect(await rowsOfSender(ben)).toHaveLength(1)
  })

  it('leaves out a record that cannot be dispatched, and keeps its row', async () => {
    const [broken, sound] = [await publish(ann), await publish(ann)]
    const [first, second] = await rowsOfSender(ann)
    await pod
      .db('outbox')
      .where({ id: first?.id })
      .update({ data: { record: 'unknown', guid: broken.guid } })

    await dispatchRow(second?.id)

    expect(await sentGuids(broken.guid, sound.guid)).toEqual([sound.guid])
    expect(await rowsOfSender(ann)).toMatchObject([{ id: first?.id }])
  })

  it('leaves out a record of a newer version, and keeps its row', async () => {
    const [newer, known] = [await publish(ann), await publish(ann)]
    const [first, second] = await rowsOfSender(ann)
    await pod
      .db('outbox')
      .where({ id: first?.id })
      .update({ data: { record: 'post', guid: newer.guid, jobVersion: 2 } })

    await dispatchRow(second?.id)

    expect(await sentGuids(newer.guid, known.guid)).toEqual([known.guid])
    expect(await rowsOfSender(ann)).toMatchObject([{ id: first?.id }])
  })

  it('puts back a record of an unknown kind', async () => {
    await expect(dispatchNow(pod, { record: 'event', guid: newGuid() } as never)).rejects.toThrow(NewerVersionNeeded)
  })

  it('does not wait for a record whose job has ended as a dead letter', async () => {
    const [dead, sound] = [await publish(ann), await publish(ann)]
    const [first, second] = await rowsOfSender(ann)
    await pod.db('outbox').where({ id: first?.id }).update({ failedAt: new Date() })

    await dispatchRow(second?.id)

    expect(await sentGuids(dead.guid, sound.guid)).toEqual([sound.guid])
  })
})
