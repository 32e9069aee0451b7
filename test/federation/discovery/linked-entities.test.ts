import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { createMessage, startConversation } from '../../../src/domain/conversations/conversations.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import type { Person } from '../../../src/persistence/models/person.js'
import { addPost } from '../../support/databases/rows.js'
import { dispatchNow } from '../../support/federation/outbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let test: TestPod
let pod: TestPod['pod']
let ann: Viewer
let quin: Person
beforeAll(async () => {
  test = await buildPod()
  pod = test.pod
  ann = await viewerOf(pod, (await test.people('ann')).ann)
  quin = await addRemotePerson(pod, 'quin@q.example')
})
afterAll(() => test.close())
beforeEach(() => pod.db('outbox').delete())

/** The fetches that a link of a local user causes. */
const listLookups = () => pod.db('outbox').where({ name: 'fetch-linked' }).orderBy('id').pluck('data')
const wanted = (guid: string, fetchesLeft = 29) => ({
  type: 'post',
  guid,
  from: quin.address,
  author: quin.address,
  depth: 1,
  fetchesLeft,
})
const linkTo = (guid: string, author = quin.address) => `diaspora://${author}/post/${guid}`

it('entities that a local post links to are fetched, unless they are known, local, or of a type that cannot be fetched', async () => {
  const [unknown, known] = [newGuid(), (await addPost(pod, quin)).guid]
  const links = [linkTo(unknown), linkTo(unknown), linkTo(known), linkTo(newGuid(), 'ann@pod.example')]
  const text = [...links, `diaspora://${quin.address}/photo/${newGuid()}`, `diaspora://${quin.address}`].join(' ')

  const { guid } = await publishPost(pod, ann, { text, public: true })
  await dispatchNow(pod, { record: 'post', guid })

  // Half of what the message may cause would have gone to the other link.
  expect(await listLookups()).toEqual([wanted(unknown, 14)])
})

it('entities that private posts, comments, conversations and messages link to are fetched', async () => {
  const guids = Array.from({ length: 4 }, newGuid)
  const [post = '', comment = '', first = '', message = ''] = guids
  const aspectId = await addAspect(pod, ann.userId, [quin])
  await pod.db('contacts').where({ userId: ann.userId, personId: quin.id }).update({ sharing: true, receiving: true })

  const secret = await publishPost(pod, ann, { text: linkTo(post), public: false, aspectIds: [aspectId] })
  await dispatchNow(pod, { record: 'post', guid: secret.guid })
  const said = await createComment(pod, ann, { postGuid: secret.guid, text: linkTo(comment) })
  await dispatchNow(pod, { record: 'comment', guid: said.guid })
  const talk = await startConversation(pod, ann, { subject: 'Tea', text: linkTo(first), recipientGuids: [quin.guid] })
  await dispatchNow(pod, { record: 'conversation', guid: talk.guid })
  const line = await createMessage(pod, ann, { conversationGuid: talk.guid, text: linkTo(message) })
  await dispatchNow(pod, { record: 'message', guid: line.guid })

  expect(await listLookups()).toEqual(guids.map((guid) => wanted(guid)))
})

it('links in a relayed entity are looked up when it is received, and not again', async () => {
  const post = await publishPost(pod, ann, { text: 'Good morning', public: true })
  const comment = await Comment.query(pod.db)
    .insert({ guid: newGuid(), postId: post.id, authorId: quin.id, text: linkTo(newGuid()) })
    .returning('*')

  await dispatchNow(pod, { record: 'comment', guid: comment.guid })

  expect(await listLookups()).toEqual([])
})
