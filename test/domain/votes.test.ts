import { createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { voteInPoll } from '../../src/domain/interactions/votes.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import { Block } from '../../src/persistence/models/contact.js'
import { Person } from '../../src/persistence/models/person.js'
import { Poll } from '../../src/persistence/models/poll.js'
import { Post } from '../../src/persistence/models/post.js'
import { verifyRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { type DomainPod, openDomainPod } from '../support/pods/domain-pod.js'

describe('voting', () => {
  let domainPod: DomainPod
  let ann: Viewer
  let ben: Viewer
  let post: Post
  let poll: Poll
  beforeAll(async () => {
    domainPod = await openDomainPod()
    ann = domainPod.ann
    ben = domainPod.ben
  })
  afterAll(() => domainPod.close())
  beforeEach(async () => {
    post = await ask()
    poll = await pollOf(post)
    await domainPod.dispatched()
  })

  const ask = () =>
    publishPost(domainPod.pod, ann, {
      text: 'Which one?',
      public: true,
      poll: { question: 'Which tree?', answers: ['Oak', 'Lime'] },
    })
  const pollOf = ({ id }: Post) =>
    Poll.query(domainPod.pod.db)
      .findOne({ postId: id })
      .withGraphFetched('answers')
      .modifyGraph('answers', (answers) => answers.orderBy('position'))
      .throwIfNotFound()
  const answerOf = ({ answers = [] }: Poll, position: number) => {
    const answer = answers[position]
    if (answer === undefined) throw new Error('The poll has no such answer.')
    return answer
  }
  const choose = (viewer: Viewer, under: Pick<Post, 'guid'>, position: number, from = poll) =>
    voteInPoll(domainPod.pod, viewer, { postGuid: under.guid, answerId: answerOf(from, position).id })
  const counts = async () => (await pollOf(post)).answers?.map(({ voteCount }) => voteCount)

  it('is counted and sent to other pods, and causes no notification', async () => {
    const { guid } = await choose(ben, post, 1)

    expect(await counts()).toEqual([0, 1])
    expect(await domainPod.participationsOf(post)).toMatchObject([{ authorId: ben.personId, count: 1 }])
    expect(await domainPod.dispatched()).toEqual([{ record: 'poll_participation', guid }])
    expect(await domainPod.notificationsOf(ann)).toEqual([])
    expect(await Post.query(domainPod.pod.db).findById(post.id)).toMatchObject({ interactedAt: post.interactedAt })
  })

  it('is signed by the voter in another person’s poll', async () => {
    const { guid, authorSignature, signedElements } = await choose(ben, post, 0)

    const author = await Person.query(domainPod.pod.db).findById(ben.personId).throwIfNotFound()
    const entity = {
      type: 'poll_participation',
      author: author.address,
      guid,
      parent_guid: poll.guid,
      poll_answer_guid: answerOf(poll, 0).guid,
      author_signature: authorSignature ?? '',
    } as const
    expect(verifyRelayable(entity, createPublicKey(author.publicKey))).toBe(true)
    expect(signedElements?.map(([name]) => name)).toEqual(['author', 'guid', 'parent_guid', 'poll_answer_guid'])
    expect(await choose(ann, post, 0)).toMatchObject({ authorSignature: null })
  })

  it('succeeds once of several simultaneous requests', async () => {
    const outcomes = await Promise.all([0, 1, 0, 1].map((position) => reasonOf(choose(ben, post, position))))

    expect(outcomes.toSorted()).toEqual(['already_voted', 'already_voted', 'already_voted', 'done'])
    expect((await counts())?.toSorted()).toEqual([0, 1])
  })

  it('on a reshare counts in the poll of the root, and subscribes to the reshare', async () => {
    const reshare = await createReshare(domainPod.pod, domainPod.cem, post.guid)

    await choose(ben, reshare, 1)

    expect(await counts()).toEqual([0, 1])
    expect((await domainPod.participationsOf(reshare)).map(({ authorId }) => authorId)).toContain(ben.personId)
    expect((await domainPod.participationsOf(post)).map(({ authorId }) => authorId)).not.toContain(ben.personId)
  })

  it('needs an answer of the same poll', async () => {
    const other = await pollOf(await ask())
    const none = await publishPost(domainPod.pod, ann, { text: 'Nothing to ask', public: true })

    expect(await reasonOf(choose(ben, post, 0, other))).toBe('answer_not_found')
    expect(await reasonOf(choose(ben, none, 0))).toBe('answer_not_found')
    expect(await reasonOf(voteInPoll(domainPod.pod, ben, { postGuid: post.guid, answerId: -1 }))).toBe(
      'answer_not_found',
    )
    expect(await reasonOf(choose(ben, { guid: newGuid() }, 0))).toBe('post_not_found')
    expect(await counts()).toEqual([0, 0])
  })

  it('is not for those whom the author of the poll blocks', async () => {
    const reshare = await createReshare(domainPod.pod, domainPod.cem, post.guid)
    await Block.query(domainPod.pod.db).insert({ userId: ann.userId, personId: ben.personId })

    expect(await reasonOf(choose(ben, post, 0))).toBe('blocked_by_author')
    expect(await reasonOf(choose(ben, reshare, 0))).toBe('blocked_by_author')
    await Block.query(domainPod.pod.db).delete()
  })
})
