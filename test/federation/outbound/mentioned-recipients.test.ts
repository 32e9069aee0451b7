import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { deliverToMentioned } from '../../../src/federation/outbound/mentioned-recipients.js'
import { AlreadyDone, loadJob } from '../../../src/jobs/outbox/load-job.js'
import { Mention } from '../../../src/persistence/models/mention.js'
import { Post } from '../../../src/persistence/models/post.js'
import { openFetchHandlers } from '../../../workers/handlers/fetch.js'
import { addPost } from '../../support/databases/rows.js'
import { type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { dispatchNow, sentAbout } from '../../support/federation/outbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let fakePods: FakePods
let test: TestPod
let pod: TestPod['pod']
let ann: Viewer

beforeAll(async () => {
  fakePods = await startFakePods()
  test = await buildPod({ change: (opened) => ({ ...opened, remotePods: fakePods.remotePods() }) })
  pod = test.pod
  ann = await viewerOf(pod, (await test.people('ann')).ann)
})
afterAll(async () => {
  await test.close()
  await fakePods.close()
})

const publish = (text: string) => publishPost(pod, ann, { text, public: true })

/** The outbox rows of the lookups that a text has caused. */
async function listLookups(
  guid: string,
): Promise<readonly { id: number; data: { address: string; namedIn: object } }[]> {
  const rows = await pod.db('outbox').where({ name: 'discover-mentioned' }).orderBy('id')
  return rows.filter(({ data }) => data.namedIn?.guid === guid)
}

async function discoverMentioned(guid: string, address: string, namedIn: { record: 'post' | 'comment'; guid: string }) {
  const [row] = await listLookups(guid)
  const work = await loadJob(pod.db, { outboxId: row?.id })
  if (work === undefined) throw new Error('There is no lookup.')
  const person = await addRemotePerson(pod, address)
  await deliverToMentioned(pod, work, person, namedIn)
  return { work, person }
}

it('a post is sent to a mentioned person after their discovery, and not again to the others', async () => {
  const reader = await addRemotePerson(pod, 'reader@known.example')
  const post = await publish('Hello @{late@found.example}, @{ann@pod.example} and @{reader@known.example}')
  await dispatchNow(pod, { record: 'post', guid: post.guid })
  const asked = await listLookups(post.guid)
  expect(asked.map(({ data }) => data)).toEqual([
    { address: 'late@found.example', namedIn: { record: 'post', guid: post.guid } },
  ])
  expect((await sentAbout(pod, post.guid)).map(({ to }) => to)).toEqual([['known.example']])
  await pod.db('deliveries').delete() // as if it had arrived

  const { work, person } = await discoverMentioned(post.guid, 'late@found.example', { record: 'post', guid: post.guid })

  expect((await sentAbout(pod, post.guid)).map(({ to }) => to)).toEqual([['found.example']])
  const mentioned = await Mention.query(pod.db).where({ postId: post.id }).orderBy('personId')
  expect(mentioned.map(({ personId }) => personId)).toEqual([ann.personId, reader.id, person.id])
  await expect(deliverToMentioned(pod, work, person, { record: 'post', guid: post.guid })).rejects.toThrow(AlreadyDone)
})

it('a comment on a local post is sent in the same way', async () => {
  const post = await publish('Good morning')
  const comment = await createComment(pod, ann, { postGuid: post.guid, text: 'And @{late@comment.example}?' })
  await dispatchNow(pod, { record: 'comment', guid: comment.guid })
  expect(await sentAbout(pod, comment.guid)).toEqual([])

  await discoverMentioned(comment.guid, 'late@comment.example', { record: 'comment', guid: comment.guid })

  expect((await sentAbout(pod, comment.guid)).map(({ to }) => to)).toEqual([['comment.example']])
})

it('discovers people mentioned in a comment on a remote post, and leaves the delivery to the pod of the post', async () => {
  const post = await addPost(pod, await addRemotePerson(pod, 'remy@r.example'))
  const comment = await createComment(pod, ann, { postGuid: post.guid, text: 'And @{late@elsewhere.example}?' })
  await dispatchNow(pod, { record: 'comment', guid: comment.guid })

  const { person } = await discoverMentioned(comment.guid, 'late@elsewhere.example', {
    record: 'comment',
    guid: comment.guid,
  })

  expect(await Mention.query(pod.db).where({ commentId: comment.id })).toMatchObject([{ personId: person.id }])
  expect((await sentAbout(pod, comment.guid)).map(({ to }) => to)).toEqual([['r.example']])
})

it('a post is sent at once to a mentioned person who has become known since', async () => {
  const post = await publish('Hello @{meanwhile@known.example}')
  await addRemotePerson(pod, 'meanwhile@known.example')

  await dispatchNow(pod, { record: 'post', guid: post.guid })

  expect(await listLookups(post.guid)).toEqual([])
  expect((await sentAbout(pod, post.guid)).map(({ to }) => to)).toEqual([['known.example']])
})

it('a comment is sent at once to a mentioned person who has become known since', async () => {
  const post = await publish('Good morning')
  const comment = await createComment(pod, ann, {
    postGuid: post.guid,
    text: 'And @{meanwhile@comment.example}?',
  })
  await addRemotePerson(pod, 'meanwhile@comment.example')

  await dispatchNow(pod, { record: 'comment', guid: comment.guid })

  expect((await sentAbout(pod, comment.guid)).map(({ to }) => to)).toEqual([['comment.example']])
})

it('a text that was deleted in the meantime is not sent', async () => {
  const post = await publish('Hello @{too-late@found.example}')
  await dispatchNow(pod, { record: 'post', guid: post.guid })
  await Post.query(pod.db).findById(post.id).delete()

  await discoverMentioned(post.guid, 'too-late@found.example', { record: 'post', guid: post.guid })

  expect(await sentAbout(pod, post.guid)).toEqual([])
})

it('causes no lookup for a private post', async () => {
  const aspectId = await addAspect(pod, ann.userId, [await addRemotePerson(pod, 'friend@f.example')])
  const post = await publishPost(pod, ann, { text: 'Psst', public: false, aspectIds: [aspectId] })
  await Post.query(pod.db).findById(post.id).patch({ text: 'Psst, @{unknown@x.example}' })

  await dispatchNow(pod, { record: 'post', guid: post.guid })

  expect(await listLookups(post.guid)).toEqual([])
  await pod.db('contacts').delete()
})

it('discovers them with the job of the worker', async () => {
  const { address } = fakePods.person('quin@late.example')
  const post = await publish(`Hello @{${address}}`)
  await dispatchNow(pod, { record: 'post', guid: post.guid })
  const [row] = await listLookups(post.guid)
  const work = await loadJob(pod.db, { outboxId: row?.id })
  if (work === undefined) throw new Error('There is no lookup.')

  const data = { address, namedIn: { record: 'post', guid: post.guid } } as const
  await openFetchHandlers()['discover-mentioned'](pod, { ...work, data }, new AbortController().signal)

  expect((await sentAbout(pod, post.guid)).map(({ to }) => to)).toEqual([['late.example']])
  expect(await listLookups(post.guid)).toEqual([])
})
