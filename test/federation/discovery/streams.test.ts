import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { movePersonRows } from '../../../src/persistence/people/move-person.js'
import { listAspectStreamPosts, listStreamPosts, type Stream } from '../../../src/persistence/streams/list-streams.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy, reshareBy } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})
afterAll(() => pod.close())
beforeEach(() => pod.empty('posts, contacts, tombstones, outbox, waiting'))

const query = { visibility: 'readable', page: { limit: 15 } } as const
const readerOf = ({ userId, id }: LocalUser) => ({ userId, personId: id })
const stream = async (reader: LocalUser, name: Stream) =>
  (await listStreamPosts(pod.db, readerOf(reader), { stream: name, ...query })).items.map(({ guid }) => guid)

it('a remote comment moves its post up in the activity of the participants', async () => {
  const [older, newer] = [await addOwn('2020-01-01'), await addOwn('2020-01-02')]
  expect(await stream(ann, 'activity')).toEqual([newer.guid, older.guid])

  const comments = [quin, remy].map((unknownPerson) => publicMessage(unknownPerson, commentBy(unknownPerson, older)))
  expect(await receive(pod, ...comments)).toEqual(allStored)

  expect(await stream(ann, 'activity')).toEqual([older.guid, newer.guid])

  async function addOwn(day: string) {
    const time = new Date(day)
    const post = await addPost(pod, ann, { createdAt: time, interactedAt: time })
    await pod.db('activity_entries').insert({ userId: ann.userId, postId: post.id, interactedAt: time })
    return post
  }
})

it('a remote reshare appears in the activity of the root author', async () => {
  const root = await addPost(pod, ann)
  const reshare = reshareBy(quin, { ...root, author: ann.address })

  expect(await receive(pod, publicMessage(quin, reshare))).toEqual(allStored)

  expect(await stream(ann, 'activity')).toEqual([reshare.guid])
})

it('a private post is in the stream of its recipients, also after its author has moved', async () => {
  const aspectId = await addAspect(pod, ann.userId, [quin])
  const post = postBy(quin, { public: false, text: `Dear @{${ann.address}}` })
  expect(await receive(pod, privateMessage(quin, ann, post))).toEqual(allStored)
  const streams = async () => [
    await stream(ann, 'main'),
    await stream(ann, 'mentions'),
    (await listAspectStreamPosts(pod.db, readerOf(ann), { aspectIds: [aspectId], ...query })).items.map(
      ({ guid }) => guid,
    ),
  ]
  expect(await streams()).toEqual([[post.guid], [post.guid], [post.guid]])

  await pod.db.transaction((transaction) => movePersonRows(transaction, { from: quin.id, to: remy.id }))

  expect(await streams()).toEqual([[post.guid], [post.guid], [post.guid]])
})

it('a person who moves to this pod finds their posts, likes and comments', async () => {
  const [own, liked, said] = [await addPost(pod, quin), await addPost(pod, remy), await addPost(pod, remy)]
  const mine = () => ({ guid: newGuid(), authorId: quin.id })
  await pod.db('likes').insert({ ...mine(), postId: liked.id })
  await pod.db('participations').insert({ ...mine(), postId: liked.id })
  await pod.db('comments').insert({ ...mine(), postId: said.id, text: 'Tea' })
  const { cem } = await pod.localUsers('cem')

  await pod.db.transaction((transaction) => movePersonRows(transaction, { from: quin.id, to: cem.id }))

  expect(await stream(cem, 'main')).toEqual([own.guid])
  expect(await stream(cem, 'activity')).toEqual([liked.guid, own.guid])
  expect(await stream(cem, 'liked')).toEqual([liked.guid])
  expect(await stream(cem, 'commented')).toEqual([said.guid])
})
