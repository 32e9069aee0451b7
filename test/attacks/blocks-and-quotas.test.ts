import { afterAll, beforeAll, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { blockHost } from '../../src/domain/moderation/pods/pod-rules.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { blockForUser } from '../../src/domain/people/blocks.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { listTagNames } from '../../src/persistence/posts/list-tags.js'
import { openClock } from '../support/assertions/clock.js'
import { commentBy, postBy } from '../support/federation/entities.js'
import { envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { viewerOf } from '../support/people/local-users.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

const BYTES_PER_DAY = 1024 * 1024
const POSTS = 40

const clock = openClock()
let fakePods: FakePods
let pod: AttackedPod
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({
    fakePods,
    environment: { POD_BYTES_PER_DAY: String(BYTES_PER_DAY) },
    change: (opened) => ({ ...opened, now: clock.now }),
  })
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})

it('S100: a blocked person of another pod opens no conversation', async () => {
  const mallory = fakePods.person('mallory@evil.example')
  const { id, guid: personGuid } = await pod.addRemotePerson(mallory)
  const { alice } = await pod.people('alice')
  const viewer = await viewerOf(pod, alice)
  await Contact.query(pod.db).insert({ userId: viewer.userId, personId: id, sharing: true })
  await blockForUser(pod, viewer, personGuid)
  const guid = newGuid()
  const [author, created_at] = [mallory.address, new Date('2025-05-06T07:08:09Z')]
  const messages = [
    {
      type: 'message',
      author,
      guid: newGuid(),
      text: 'Hi',
      created_at,
      edited_at: undefined,
      conversation_guid: guid,
    } as const,
  ]
  const participants = [author, alice.account.address]

  await pod.postPrivate(
    { type: 'conversation', author, guid, subject: 'Tea', created_at, participants, messages },
    mallory,
    alice,
  )
  await pod.waitUntilIdle()

  expect(await pod.rows('conversations', 'messages', 'notifications')).toEqual([0, 0, 0])
})

it('S101: relayables of people of a blocked pod are ignored if another pod relays them, known or not', async () => {
  const gina = fakePods.person('gina@good.example')
  const [known, unknown] = [fakePods.person('sam@spam.example'), fakePods.person('new@spam.example')]
  await pod.addRemotePerson(gina)
  await pod.addRemotePerson(known)
  await blockHost(pod, COMMAND_ACTOR, { host: 'spam.example', port: 443 }, { reason: 'Spam', isConfirmed: true })
  const post = postBy(gina)
  await pod.postPublic(post, gina)
  await pod.waitUntilIdle()

  const result = await pod.send(
    ...[known, unknown].map((author) => envelopeOf(gina, signedBy(author, commentBy(author, post)))),
  )

  expect(result).toEqual({ statuses: [202, 202], faults: [], changes: {} })
  expect(fakePods.requests.filter((request) => request.startsWith('spam.example'))).toEqual([])
})

it('S102: a pod that sends more than its bytes of a day stores no more of them', { timeout: 60_000 }, async () => {
  const flooder = fakePods.person('flooder@flood.example')
  const honest = fakePods.person('honest@good.example')
  await pod.addRemotePerson(flooder)
  await pod.addRemotePerson(honest)
  const [before = 0] = await pod.rows('posts')
  for (let index = 0; index < POSTS; index += 1) {
    clock.later(0.1)
    await pod.postPublic(postBy(flooder, { text: 'x'.repeat(50_000) }), flooder)
    await pod.waitUntilIdle()
  }
  const [after = 0] = await pod.rows('posts')
  expect(after - before).toBeGreaterThan(5)
  expect(after - before).toBeLessThan(POSTS / 2 + 2)

  await pod.postPublic(postBy(honest), honest)
  await pod.waitUntilIdle()
  expect(await pod.rows('posts')).toEqual([after + 1])
})

it('S103: names of tags in private posts are found by their author alone', async () => {
  const { ann, ben } = await pod.people('ann', 'ben')
  const [author, reader] = [await viewerOf(pod, ann), await viewerOf(pod, ben)]
  const aspect = await Aspect.query(pod.db).findOne({ userId: author.userId }).throwIfNotFound()
  await publishPost(pod, author, { text: 'My #rareailment', public: false, aspectIds: [aspect.id] })

  const searchPosts = async (viewer: typeof author) =>
    (await listTagNames(pod.db, viewer, 'rare', { offset: 0, limit: 10 })).items
  expect([await searchPosts(author), await searchPosts(reader)]).toEqual([['rareailment'], []])
})
