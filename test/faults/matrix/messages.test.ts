import type { Job } from 'bullmq'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { defineJob, retriedForHours } from '../../../src/jobs/definitions.js'
import type { QueueName } from '../../../src/jobs/queues/queue-names.js'
import { Person } from '../../../src/persistence/models/person.js'
import { writeEntity } from '../../../src/protocol/entities/entity-xml.js'
import type { ProfileEntity } from '../../../src/protocol/entities/people.js'
import type { StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { signMagicEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { until } from '../../soak/until.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, postBy, profileOf } from '../../support/federation/entities.js'
import { encryptEnvelopeFor, envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { replayDeadLetters } from '../../support/queues/change-dead-letters.js'
import { ageJobs } from './age-jobs.js'
import { type LocalClient, type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { callWithRetries, postInbound, publishWithRetries, statusesIn, type TimedResponse } from './senders.js'
import { store } from './this-run.js'

const unknownJob = defineJob<object>()('notify', 'no-such-job', retriedForHours)
const TIMEOUT_MS = 120_000

let podUnderFaults: PodUnderFaults
let pod: PodUnderFaults['pod']
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
  pod = podUnderFaults.pod
})
afterAll(() => podUnderFaults?.close())
afterEach(async () => expect(await podUnderFaults.otherPods.missing()).toEqual([]))

/** Sends a message again until it is accepted. */
async function send(envelope: string, path = '/receive/public'): Promise<void> {
  await until(
    'the message is accepted',
    TIMEOUT_MS,
    async () => (await postInbound(podUnderFaults, path, envelope)).status === 202,
  )
}

async function count(table: string, where: object): Promise<number> {
  return (await pod.db(table).where(where).select('id')).length
}

it('F17: likes and comments are stored concurrently', async () => {
  const { alice, bob } = podUnderFaults
  const guids: string[] = []
  for (let index = 0; index < 5; index += 1) guids.push((await publishWithRetries(podUnderFaults, alice)).guid ?? '')
  const responses: TimedResponse[] = []
  const call = (client: LocalClient, path: string, content?: object) =>
    callWithRetries(podUnderFaults, client, { method: 'POST', path, content }, (response) => responses.push(response))
  const calls = [...guids, ...guids.toReversed()].flatMap((guid) =>
    [alice, bob].flatMap((client) => [
      call(client, `/posts/${guid}/likes`),
      ...[1, 2].map((number) => call(client, `/posts/${guid}/comments`, { body: `Comment ${number}` })),
    ]),
  )

  await Promise.all(calls)

  // A second like gets an error. A busy machine responds 503 to some requests.
  const failed = responses.filter(({ status }) => typeof status !== 'number' || status >= 500)
  expect(statusesIn(failed).filter((status) => status !== 503)).toEqual([])
  expect(failed.length).toBeLessThan(responses.length / 10)
  await podUnderFaults.waitUntilIdle()
  const posts = await pod.db('posts').whereIn('guid', guids).select('id', 'commentsCount', 'likesCount')
  expect(posts.map(({ commentsCount, likesCount }) => [commentsCount, likesCount])).toEqual(guids.map(() => [8, 2]))
  for (const { id } of posts) expect(await count('comments', { postId: id })).toBe(8)
})

it('F21: the same message arrives a hundred times at once', async () => {
  const post = await addPost(pod, podUnderFaults.alice)
  const quin = await podUnderFaults.otherPods.addKnownPerson()
  const [comment, like] = [commentBy(quin, post), likeBy(quin, post)]
  const remotePost = postBy(quin)
  const envelopes = [
    ...[remotePost, comment, like, likeBy(quin, post), likeBy(quin, post)].map((entity) => envelopeOf(quin, entity)),
    signMagicEnvelope(
      writeEntity(remotePost).replace('</status_message>', '\n</status_message>'),
      quin.address,
      quin.privateKey,
    ),
  ]

  await Promise.all(envelopes.flatMap((envelope) => Array.from({ length: 100 }, () => send(envelope))))
  await podUnderFaults.waitUntilIdle()

  expect(await count('comments', { guid: comment.guid })).toBe(1)
  expect(await count('likes', { postId: post.id })).toBe(1)
  expect(await pod.db('posts').where({ id: post.id }).select('commentsCount', 'likesCount')).toEqual([
    { commentsCount: 1, likesCount: 1 },
  ])
  expect((await pod.db('notifications').where({ postId: post.id }).pluck('type')).toSorted()).toEqual([
    'commented_on_post',
    'liked',
  ])
  const delivered = await pod.db('outboundMessages').whereIn('about', [post.guid, remotePost.guid]).pluck('record')
  expect(delivered.toSorted()).toEqual(['comment', 'like', 'participation'])
  expect(await count('posts', { guid: remotePost.guid })).toBe(1)
  expect(podUnderFaults.logLines().filter(({ msg }) => msg === 'inbound message rejected')).toEqual([])
})

it.each(['in order', 'backwards', 'all at once'])('F22: messages arrive %s', async (order) => {
  const [author, other] = [
    await podUnderFaults.otherPods.addKnownPerson(),
    await podUnderFaults.otherPods.addKnownPerson(),
  ]
  const [post, gone] = [postBy(author), postBy(author)]
  const hidden = postBy(author, { public: false })
  const comment = commentBy(other, post)
  const privately = {
    path: `/receive/users/${podUnderFaults.alice.guid}`,
    wrap: (envelope: string) => encryptEnvelopeFor(podUnderFaults.alice.publicKey, envelope),
  }
  const publicly = { path: '/receive/public', wrap: (envelope: string) => envelope }
  const retraction = {
    type: 'retraction',
    author: author.address,
    target_guid: gone.guid,
    target_type: 'Post',
  } as const
  const messages = [
    { ...publicly, entity: post },
    { ...publicly, entity: comment },
    { ...publicly, entity: likeBy(other, comment, { parent_type: 'Comment' }) },
    { ...privately, entity: hidden },
    { ...privately, entity: commentBy(other, hidden) },
    { ...publicly, entity: gone },
    { ...publicly, entity: retraction },
    { ...publicly, entity: profileBy(author, 'Old', new Date('2026-01-01T00:00:00Z')) },
    { ...publicly, entity: profileBy(author, 'New', new Date('2026-01-02T00:00:00Z')) },
  ]
  const sent = order === 'backwards' ? messages.toReversed() : messages

  const sends = sent.map(
    ({ path, wrap, entity }) =>
      () =>
        send(wrap(envelopeOf(author, entity)), path),
  )
  if (order === 'all at once') await Promise.all(sends.map((each) => each()))
  else for (const each of sends) await each()
  await podUnderFaults.waitUntilIdle()
  // A retraction of an unknown entity waits an hour for it.
  await pod
    .db('waiting')
    .where({ waitsFor: `post:${gone.guid}` })
    .update({ dueAt: pod.db.fn.now() })
  await until(
    'no message waits for another one',
    TIMEOUT_MS,
    async () => (await pod.db('waiting').select('id')).length === 0,
  )
  await podUnderFaults.waitUntilIdle()

  expect(await pod.db('posts').where({ guid: post.guid }).select('commentsCount')).toEqual([{ commentsCount: 1 }])
  expect(await pod.db('comments').where({ guid: comment.guid }).select('likesCount')).toEqual([{ likesCount: 1 }])
  expect(await pod.db('posts').where({ guid: hidden.guid }).select('commentsCount')).toEqual([{ commentsCount: 1 }])
  expect(await count('posts', { guid: gone.guid })).toBe(0)
  const { profile } = await Person.byAddress(pod.db, author.address).withGraphFetched('profile').throwIfNotFound()
  expect(profile?.firstName).toBe('New')
  expect(await listDeadLetters(pod)).toEqual([])
})

it('F23: unknown persons comment on an unknown post', async () => {
  const { otherPods, fakePods } = podUnderFaults
  const author = otherPods.newRemotePerson()
  const post = postBy(author)
  fakePods.serve(author, post)
  // A pod that receives a request for a post of another pod redirects to that pod.
  const [, home = ''] = author.address.split('@')
  const fetched = otherPods.hosts.map((host) => `${host}/fetch/post/${post.guid}`)
  for (const path of fetched.filter((each) => !each.startsWith(home))) {
    fakePods.script(path, (_request, response) => {
      response.writeHead(302, { location: `http://${home}/fetch/post/${post.guid}` }).end()
    })
  }
  const unknownPeople = Array.from({ length: 20 }, () => otherPods.newRemotePerson())
  const comments = Array.from({ length: 1_000 }, (_, index) => commentBy(unknownPeople[index % 20] ?? author, post))

  const queue = comments.map((comment) => envelopeOf(author, comment))
  async function sendNext(): Promise<void> {
    for (let envelope = queue.pop(); envelope !== undefined; envelope = queue.pop()) await send(envelope)
  }
  await Promise.all(Array.from({ length: 16 }, sendNext))
  await until('all comments are stored', TIMEOUT_MS, async () => {
    const [stored] = await pod.db('posts').where({ guid: post.guid }).select('commentsCount')
    return stored?.commentsCount === comments.length
  })
  await podUnderFaults.waitUntilIdle()

  const fetches = fakePods.requests.filter((request) => fetched.includes(request))
  expect(fetches.filter((request) => request.startsWith(home))).toHaveLength(1)
  expect(fetches.length).toBeLessThanOrEqual(2) // the pod of the first commenter may get a request first
  const lookupsOf = ({ address }: FakePerson) =>
    fakePods.requests.filter((request) => request.endsWith(`acct:${address}`))
  expect([author, ...unknownPeople].map((person) => lookupsOf(person).length)).toEqual(
    Array.from({ length: 21 }, () => 1),
  )
  expect(await pod.db('waiting').select('id')).toEqual([])
})

it('F31: a job has an unknown name', async () => {
  await pod.jobs.add(unknownJob, {})
  await pod.db('outbox').insert({ queue: 'notify', name: 'no-such-job', data: {} })

  await until('both jobs were put back several times', TIMEOUT_MS, async () => {
    await ageJobs(podUnderFaults, 'notify')
    const jobs = await delayedJobs('notify')
    return jobs.length === 2 && jobs.every(({ data }) => data.timesPutBack > 2)
  })

  expect(await listDeadLetters(pod)).toEqual([])
  await pod.db('outbox').where({ name: unknownJob.name }).delete()
  await Promise.all((await delayedJobs('notify')).map((job) => job.remove()))
})

async function delayedJobs(queue: QueueName): Promise<readonly Job[]> {
  const delayed = await pod.jobs.list(queue, 'delayed', 0, 10)
  const jobs = await Promise.all(delayed.map(({ id }) => pod.jobs.find(queue, id)))
  return jobs.flatMap((job) => job ?? [])
}

async function refuseText(text: string): Promise<void> {
  await pod.db.raw(`
    create function refuse_text() returns trigger language plpgsql as $$
    begin
      if new.text = '${text}' then raise exception 'not this one'; end if;
      return new;
    end $$;
    create trigger refuse_text before insert on posts for each row execute function refuse_text()`)
}
const allowAll = () => pod.db.raw('drop function refuse_text cascade')

/** Sends the messages at once, so that they are processed in one batch. */
async function sendPosts(texts: readonly string[]): Promise<readonly StatusMessageEntity[]> {
  const author = await podUnderFaults.otherPods.addKnownPerson()
  const posts = texts.map((text) => postBy(author, { text }))
  await Promise.all(posts.map((post) => send(envelopeOf(author, post))))
  return posts
}

async function untilDead(count: number): Promise<void> {
  await until(`${count} dead letters exist`, TIMEOUT_MS, async () => {
    await ageJobs(podUnderFaults)
    return (await listDeadLetters(pod, {}, 1_000)).length === count
  })
}

it('F37: some messages of a batch fail permanently', async () => {
  await refuseText('poison')
  const bad = new Set([0, 100, 101, 255])
  const posts = await sendPosts(Array.from({ length: 256 }, (_, index) => (bad.has(index) ? 'poison' : 'fine')))
  const fine = posts.filter(({ text }) => text === 'fine').map(({ guid }) => guid)
  await until('all others are stored', TIMEOUT_MS, async () => {
    return (await pod.db('posts').whereIn('guid', fine).select('id')).length === fine.length
  })
  await untilDead(bad.size)

  const dead = await pod.jobs.failed('inbound', 0, 100)
  expect(dead.map(({ data }) => data.messages.length)).toEqual([1, 1, 1, 1])
  expect(await count('posts', { text: 'poison' })).toBe(0)
  await allowAll()
  await replayDeadLetters(pod)
  await podUnderFaults.waitUntilIdle()
  expect(await count('posts', { text: 'poison' })).toBe(bad.size)
  expect(await listDeadLetters(pod)).toEqual([])
})

it('F30: fifty dead letters are replayed, twice', async () => {
  await refuseText('for later')
  const posts = await sendPosts(Array.from({ length: 50 }, () => 'for later'))
  await untilDead(50)
  await allowAll()

  expect(await replayDeadLetters(pod, { fault: 'internal' })).toBe(50)
  await replayDeadLetters(pod, { fault: 'internal' })
  await podUnderFaults.waitUntilIdle()

  const stored = await pod.db('posts').where({ text: 'for later' }).pluck('guid')
  expect(stored.toSorted()).toEqual(posts.map(({ guid }) => guid).toSorted())
  expect(await listDeadLetters(pod)).toEqual([])
})

function profileBy(author: FakePerson, firstName: string, editedAt: Date): ProfileEntity {
  return profileOf(author, { edited_at: editedAt, first_name: firstName })
}
