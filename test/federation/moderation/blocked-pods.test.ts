import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { setPodRule, unblockHost } from '../../../src/domain/moderation/pods/pod-rules.js'
import { blockOnPod } from '../../../src/domain/moderation/restrict-person.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import type { Post } from '../../../src/persistence/models/post.js'
import { DELIVERY_PRIORITY } from '../../../src/persistence/outbound/delivery-priority.js'
import { UNDELIVERED_LIMITS } from '../../../src/persistence/outbound/limits.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, pollWith, postBy, voteBy } from '../../support/federation/entities.js'
import { signedBy } from '../../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let fakePods: FakePods
let pod: FederationPod
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await openFederationPod()
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})
beforeEach(async () => {
  await pod.empty('posts, outbox, waiting, pods, people, pod_rules, quarantine')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

const block = (host: string, port = 443) =>
  setPodRule(
    pod,
    COMMAND_ACTOR,
    { domain: host, port, subdomains: false, state: 'blocked' },
    { reason: 'Spam', confirm: host },
  )
const ignored = { ...allStored, ignored: 1 }
const rejected = { ...allStored, rejected: ['Moderated'] }

describe('entities that the pod of an author relays', () => {
  it.each<[what: string, (author: FakePerson, post: { readonly guid: string }) => Entity]>([
    ['a comment', (author, post) => signedBy(author, commentBy(author, post))],
    ['a like', (author, post) => signedBy(author, likeBy(author, post))],
  ])('a relayed message of a person on a blocked pod is ignored: %s', async (_what, make) => {
    const post = postBy(quin)
    await receive(pod, publicMessage(quin, post))
    await block('r.example')

    expect(await receive(pod, publicMessage(quin, make(remy, post)))).toEqual(ignored)

    await unblockHost(pod, COMMAND_ACTOR, { host: 'r.example', port: 443 }, { reason: 'A mistake' })
    expect(await receive(pod, publicMessage(quin, make(remy, post)))).toEqual(allStored)
  })

  it('a relayed message of a person who has left is ignored', async () => {
    const post = postBy(quin)
    await receive(pod, publicMessage(quin, post))
    await pod.db('people').where({ id: remy.id }).update({ closedAt: new Date() })

    expect(await receive(pod, publicMessage(quin, signedBy(remy, commentBy(remy, post))))).toEqual(ignored)
  })

  it('a relayed message of an unknown person of a blocked pod causes no lookup', async () => {
    const sam = fakePods.person('sam@s.example')
    const post = postBy(quin)
    await receive(pod, publicMessage(quin, post))
    await block('s.example')

    expect(await receive(pod, publicMessage(quin, signedBy(sam, commentBy(sam, post))))).toEqual(ignored)
    expect(await pod.rows('outbox', 'waiting', 'comments')).toEqual([0, 0, 0])
  })
})

describe('a pod that is blocked before it is known', () => {
  it.each(['sam@s.example', 'sam@s.example:3000'])('sends nothing that is stored: %s', async (address) => {
    const sam = fakePods.person(address)
    const [, host = '', port = '443'] = /@([^:]+):?(\d+)?/.exec(address) ?? []
    await block(host, Number(port))

    expect(await receive(pod, publicMessage(sam, postBy(sam)))).toEqual(ignored)
    expect(await pod.rows('outbox', 'waiting', 'posts')).toEqual([0, 0, 0])
  })

  it('does not block another port of its host', async () => {
    const sam = fakePods.person('sam@s.example:3000')
    await block('s.example')

    expect(await receive(pod, publicMessage(sam, postBy(sam)))).toEqual({
      ...allStored,
      waiting: [`person:${sam.address}`],
    })
  })

  it('gets no lookups of its people', async () => {
    await block('s.example')

    await expect(discoverPerson(pod, 'sam@s.example')).rejects.toThrow('blocked by the operator')
  })
})

it('a person whose address is at a blocked host is ignored, also with a pod at another host', async () => {
  await pod
    .db('people')
    .where({ id: remy.id })
    .update({ podId: (await pod.db('people').where({ id: quin.id }).first()).podId })
  await block('r.example')

  expect(await receive(pod, publicMessage(remy, postBy(remy, { guid: newGuid() })))).toEqual(ignored)
  expect(await receive(pod, publicMessage(quin, postBy(quin)))).toEqual(allStored)
})

describe('a blocked person', () => {
  it('still retracts content, ends sharing and closes the account', async () => {
    const post = postBy(remy)
    await receive(pod, publicMessage(remy, post))
    await block('r.example')
    const retraction = {
      type: 'retraction',
      author: remy.address,
      target_guid: post.guid,
      target_type: 'Post',
    } as const

    expect(await receive(pod, publicMessage(remy, retraction))).toEqual(allStored)
    expect(await pod.rows('posts')).toEqual([0])
    expect(await receive(pod, publicMessage(remy, { type: 'account_deletion', author: remy.address }))).toEqual(
      allStored,
    )
    expect(await pod.db('people').where({ id: remy.id }).first()).toMatchObject({ closedAt: expect.any(Date) })
  })

  it('is blocked by a rule for a domain above the host, before and after an exception', async () => {
    const deep = await pod.addRemotePerson('dora@deep.r.example')
    const rule = { domain: 'r.example', state: 'blocked' } as const
    await setPodRule(pod, COMMAND_ACTOR, rule, { reason: 'Spam', confirm: 'r.example' })

    expect(await receive(pod, publicMessage(deep, postBy(deep)))).toEqual(ignored)

    await unblockHost(pod, COMMAND_ACTOR, { host: 'deep.r.example', port: 443 }, { reason: 'They are fine' })
    expect(await receive(pod, publicMessage(deep, postBy(deep)))).toEqual(allStored)
    expect(await receive(pod, publicMessage(remy, postBy(remy)))).toEqual(ignored)
  })
})

describe('interactions from a blocked pod with a local post', () => {
  it.each<[what: string, (author: FakePerson, post: { readonly guid: string }) => Entity]>([
    ['a comment', commentBy],
    ['a like', likeBy],
  ])('are not stored, and answered with a retraction by the author of the post: %s', async (_what, make) => {
    const { ann } = await pod.localUsers('ann')
    const post = await addPost(pod, ann)
    await block('r.example')
    const entity = make(remy, post)

    expect(await receive(pod, publicMessage(remy, entity))).toEqual({ ...allStored, rejected: ['Moderated'] })

    expect(await pod.rows('comments', 'likes', 'quarantine')).toEqual([0, 0, 0])
    expect(await sentAbout(pod, 'guid' in entity ? entity.guid : '')).toMatchObject([
      { verb: 'retract', senderId: ann.id, to: ['r.example'] },
    ])
  })

  it('are answered if the pod is blocked while they are being opened', async () => {
    const { ann } = await pod.localUsers('ann')
    const post = await addPost(pod, ann)
    const comment = commentBy(remy, post)

    const outcome = await receive({ ...pod, crypto: blockingWhileOpened() }, publicMessage(remy, comment))

    expect(outcome).toEqual({ ...allStored, rejected: ['Moderated'] })
    expect(await sentAbout(pod, comment.guid)).toMatchObject([{ verb: 'retract', to: ['r.example'] }])
  })

  it('are answered once, also after the answer has arrived', async () => {
    const [message] = (await commentsFromBlockedPod(1)).map((comment) => publicMessage(remy, comment))
    if (message === undefined) throw new Error('There is no comment.')
    await receive(pod, message)
    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([1, 1])
    await pod.db('deliveries').delete() // it has arrived

    expect(await receive(pod, message)).toEqual(rejected)

    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([1, 0])
  })

  it('are not answered while too many answers wait for the pod', async () => {
    const [last, ...first] = (await commentsFromBlockedPod(3)).map((comment) => publicMessage(remy, comment))
    if (last === undefined) throw new Error('There is no comment.')
    const { podId } = await pod.db('people').where({ id: remy.id }).first('podId')
    await pod.db.raw(
      `with messages as (
         insert into outbound_messages (record, guid, verb, sender_id, public, entity)
         select 'like', md5(i::text), 'retract', person_id, true, ''
         from generate_series(1, ?::integer) as i cross join users
         returning id
       )
       insert into deliveries (message_id, pod_id, priority) select id, ?, ? from messages`,
      [UNDELIVERED_LIMITS.retractionsToBlocked - 1, podId, DELIVERY_PRIORITY.relay],
    )

    await receive(pod, ...first)
    await receive(pod, last)

    const { retractionsToBlocked } = UNDELIVERED_LIMITS
    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([retractionsToBlocked, retractionsToBlocked])
  })

  it('take as many statements as one, also with repeats in one batch', async () => {
    const comments = await commentsFromBlockedPod(35)
    const [first, second, ...others] = comments.map((comment) => publicMessage(remy, comment))
    if (first === undefined || second === undefined) throw new Error('There are no comments.')
    await receive(pod, first) // what a process finds out once

    const one = await statementsDuring(() => receive(pod, second), 'worker')
    const many = await statementsDuring(() => receive(pod, ...others, ...others.slice(0, 1)), 'worker')

    expect(many).toBe(one)
    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([35, 35])
  })

  /** Comments of remy's, whose pod is blocked, on a post of a local user. */
  async function commentsFromBlockedPod(count: number) {
    const { ann } = await pod.localUsers('ann')
    const post = await addPost(pod, ann)
    await block('r.example')
    return Array.from({ length: count }, () => commentBy(remy, post))
  }
})

describe.each<[what: string, blockRemy: () => Promise<unknown>]>([
  ['a blocked pod', () => block('r.example')],
  ['a blocked person', () => blockOnPod(pod, COMMAND_ACTOR, remy.guid, { reason: 'Spam', confirm: remy.address })],
])('interactions from %s', (_what, blockRemy) => {
  let post: Post
  beforeEach(async () => {
    const { ann } = await pod.localUsers('ann')
    post = await addPost(pod, ann)
  })

  it.each<[what: string, make: (post: Post) => Entity | Promise<Entity>]>([
    ['a signature of another person', (parent) => signedBy(quin, commentBy(remy, parent))],
    ['another author', (parent) => commentBy(quin, parent)],
  ])('with %s are counted only', async (_fault, make) => {
    const message = publicMessage(remy, await make(post))
    const { rejected: faults } = await receive(pod, message)
    expect(faults).toHaveLength(1)
    await pod.db('quarantine').delete()
    await blockRemy()

    expect(await receive(pod, message)).toEqual(ignored)

    expect(await pod.rows('comments', 'quarantine', 'outbound_messages', 'deliveries')).toEqual([0, 0, 0, 0])
  })

  it('that were stored before the block are not retracted when they are repeated', async () => {
    const poll = pollWith('Yes', 'No')
    const [answer] = poll.poll_answers
    if (answer === undefined) throw new Error('There is no answer.')
    await addPoll(poll)
    const entities = [commentBy(remy, post), likeBy(remy, post), voteBy(remy, poll, answer)]
    const messages = entities.map((entity) => publicMessage(remy, entity))
    expect(await receive(pod, ...messages)).toEqual(allStored)
    await blockRemy()

    expect(await receive(pod, ...messages)).toEqual({ ...allStored, rejected: ['Moderated', 'Moderated', 'Moderated'] })

    expect(await pod.rows('comments', 'likes', 'poll_participations')).toEqual([1, 1, 1])
    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([0, 0])
  })

  async function addPoll({ guid, question, poll_answers }: ReturnType<typeof pollWith>): Promise<void> {
    const [{ id }] = await pod.db('polls').insert({ guid, question, postId: post.id }).returning('id')
    await pod.db('pollAnswers').insert(
      poll_answers.map(({ guid: answerGuid, answer }, position) => ({
        pollId: id,
        guid: answerGuid,
        answer,
        position,
      })),
    )
  }
})

/** Blocks r.example after the envelopes are verified. */
function blockingWhileOpened(): typeof pod.crypto {
  return Object.assign(Object.create(pod.crypto), {
    async verifyEnvelopes(...round: Parameters<typeof pod.crypto.verifyEnvelopes>) {
      const opened = await pod.crypto.verifyEnvelopes(...round)
      await block('r.example')
      return opened
    },
  })
}

it('a pod that is blocked while its messages are being opened stores nothing', async () => {
  const post = postBy(quin)
  const messages = [publicMessage(remy, postBy(remy)), publicMessage(quin, post)]

  const outcome = await receive({ ...pod, crypto: blockingWhileOpened() }, ...messages)

  expect(outcome).toEqual(ignored)
  expect(await pod.db('posts').pluck('guid')).toEqual([post.guid])
})
