import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addToAspect } from '../../src/domain/contacts/contacts.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import { commentBy, likeBy, participationBy, voteBy } from '../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import type { TestPerson } from '../support/people/local-users.js'
import { viewerOf } from '../support/people/local-users.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

interface Guids {
  readonly post: string
  readonly comment: string
  readonly poll: string
  readonly answer: string
}

/** Every kind of answer to a post. */
const KINDS: Readonly<Record<string, (author: FakePerson, guids: Guids) => Entity>> = {
  'a comment': (author, { post }) => commentBy(author, { guid: post }),
  'a like of the post': (author, { post }) => likeBy(author, { guid: post }),
  'a like of a comment': (author, { comment }) => likeBy(author, { guid: comment }, { parent_type: 'Comment' }),
  'a vote': (author, { poll, answer }) => voteBy(author, { guid: poll }, { guid: answer }),
  'a participation': (author, { post }) => participationBy(author, { guid: post }),
}

const TABLES = ['comments', 'likes', 'poll_participations', 'participations', 'notifications'] as const

describe('S97: answers to a private post by people who do not receive it', () => {
  let fakePods: FakePods
  let pod: AttackedPod
  let alice: TestPerson
  let gina: FakePerson
  let mallory: FakePerson
  let known: Guids

  beforeAll(async () => {
    fakePods = await startFakePods()
    pod = await startAttackedPod({ fakePods })
    ;({ alice } = await pod.people('alice'))
    gina = fakePods.person('gina@good.example')
    mallory = fakePods.person('mallory@evil.example')
    await pod.addRemotePerson(gina)
    await pod.addRemotePerson(mallory)
    const viewer = await viewerOf(pod, alice)
    const aspect = await Aspect.query(pod.db).findOne({ userId: viewer.userId }).throwIfNotFound()
    await addToAspect(pod, viewer, { aspectId: aspect.id, personGuid: gina.guid })
    const { guid, id } = await publishPost(pod, viewer, {
      text: 'For friends',
      public: false,
      aspectIds: [aspect.id],
      poll: { question: 'Tea?', answers: ['Yes', 'No'] },
    })
    const comment = commentBy(gina, { guid })
    await pod.postPrivate(comment, gina, alice)
    await pod.waitUntilIdle()
    const poll = await pod.db('polls').where({ postId: id }).first('id', 'guid')
    const answer = await pod.db('pollAnswers').where({ pollId: poll.id }).first('guid')
    known = { post: guid, comment: comment.guid, poll: poll.guid, answer: answer.guid }
  })
  afterAll(async () => {
    await pod.close()
    await fakePods.close()
  })

  /** Everything that mallory's pod can observe after a message. */
  async function requestsAfter(guids: Guids, send: () => Promise<number>): Promise<readonly string[]> {
    const before = fakePods.requests.length
    expect(await send()).toBe(202)
    await pod.waitUntilIdle()
    return fakePods.requests.slice(before).map((request) => {
      let text = String(request)
      for (const [name, guid] of Object.entries(guids)) text = text.replaceAll(guid, name)
      return text
    })
  }

  const rows = () => pod.rows(...TABLES)
  const madeUp = (): Guids => ({ post: newGuid(), comment: newGuid(), poll: newGuid(), answer: newGuid() })

  describe.each(Object.entries(KINDS))('%s', (kind, build) => {
    it.each(['publicly', 'privately'] as const)(
      'sent %s, meets the same unknown parent as a made-up guid',
      async (way) => {
        const before = await rows()
        const send = (guids: Guids) => () => {
          const entity = build(mallory, guids)
          return way === 'publicly' ? pod.postPublic(entity, mallory) : pod.postPrivate(entity, mallory, alice)
        }
        const invented = madeUp()

        const requests = await requestsAfter(known, send(known))

        expect(requests).toEqual(await requestsAfter(invented, send(invented)))
        // The parent of a participation is never fetched: it must be a post of this pod.
        expect(requests.length > 0).toBe(kind !== 'a participation')
        expect(await rows()).toEqual(before)
      },
    )

    it('of a person who receives it is stored', async () => {
      const table = { 'a comment': 'comments', 'a vote': 'poll_participations', 'a participation': 'participations' }
      const [before] = await pod.rows(table[kind as keyof typeof table] ?? 'likes')
      await pod.postPrivate(build(gina, known), gina, alice)
      await pod.waitUntilIdle()

      const [after] = await pod.rows(table[kind as keyof typeof table] ?? 'likes')
      expect(after).toBe(Number(before) + 1)
    })
  })
})
