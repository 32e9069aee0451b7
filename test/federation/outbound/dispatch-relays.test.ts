import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { dispatchRelays } from '../../../src/federation/outbound/dispatch-relays.js'
import { groupOfJob, groupOfRows } from '../../../src/jobs/outbox/job-groups.js'
import { loadJob } from '../../../src/jobs/outbox/load-job.js'
import { Mention } from '../../../src/persistence/models/mention.js'
import { Participation } from '../../../src/persistence/models/participation.js'
import type { Post } from '../../../src/persistence/models/post.js'
import { UNDELIVERED_LIMITS } from '../../../src/persistence/outbound/limits.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
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
beforeEach(async () => {
  await pod.empty('posts, outbound_messages, outbox')
  await pod.db('pods').update({ answeredAt: new Date(), skippedDeliveries: 0 })
})

async function relayRow(...guids: readonly string[]) {
  const data = { relays: guids.map((guid) => ({ record: 'comment', guid }) as const) }
  const row = { queue: 'relay', name: 'dispatch-relays', data: JSON.stringify(data) }
  const [{ id }] = await pod.db('outbox').insert(row).returning('id')
  return { id: Number(id), data }
}

async function relay(...guids: readonly string[]): Promise<void> {
  const { id, data } = await relayRow(...guids)
  const work = await loadJob(pod.db, { outboxId: id })
  if (work === undefined) throw new Error('The outbox row is gone.')
  await dispatchRelays(pod, groupOfJob({ ...work, data }))
  expect(await pod.rows('outbox')).toEqual([0])
}

/** A post of ann's in which both take part. */
async function postWithSubscribers(fields: Partial<Post> = {}): Promise<Post> {
  const post = await addPost(pod, ann, fields)
  await pod.db.transaction((transaction) => Participation.subscribe(transaction, post.id, [quin.id, remy.id]))
  return post
}

/** As it is kept of a comment by quin, whose elements have an order of their own. */
async function commentOfQuin(post: Post): Promise<{ readonly id: number; readonly guid: string }> {
  const guid = newGuid()
  const elements = [
    ['guid', guid],
    ['text', 'Tea'],
    ['author', quin.address],
    ['parent_guid', post.guid],
  ]
  const row = {
    guid,
    postId: post.id,
    authorId: quin.id,
    text: 'Tea',
    authorSignature: 'c2lnbmVk',
    signedElements: JSON.stringify(elements),
  }
  const [{ id }] = await pod.db('comments').insert(row).returning('id')
  return { id, guid }
}

describe('relays of one batch', () => {
  it('go for many outbox rows together, except for rows that another worker has done', async () => {
    const post = await postWithSubscribers()
    const comments = [await commentOfQuin(post), await commentOfQuin(post), await commentOfQuin(post)]
    const rows = await Promise.all(comments.map(({ guid }) => relayRow(guid)))
    await pod.db('outbox').where({ id: rows[0]?.id }).delete()

    await dispatchRelays(pod, groupOfRows(rows))

    const sent = await Promise.all(comments.map(({ guid }) => sentAbout(pod, guid)))
    expect(sent.map(({ length }) => length)).toEqual([0, 1, 1])
    expect(await pod.rows('outbox')).toEqual([0])
  })

  it('go as they were signed to the subscribers, in the name of the author of the post, not back to their pod', async () => {
    const post = await postWithSubscribers()
    const { guid } = await commentOfQuin(post)

    await relay(guid)

    const [sent, ...more] = await sentAbout(pod, guid)
    expect(more).toEqual([])
    expect(sent).toMatchObject({ verb: 'create', public: true, senderId: ann.id, to: ['r.example'] })
    expect(sent?.entity).toMatch(/<comment><guid>.*<text>.*<author>.*<parent_guid>.*<author_signature>c2lnbmVk</s)
    expect(await pod.db('deliveries').pluck('priority')).toEqual([1])
  })

  it('go to the people whom a comment mentions too', async () => {
    const post = await postWithSubscribers()
    const named = await pod.addRemotePerson('nia@n.example')
    await pod.db('pods').update({ answeredAt: new Date() })
    const { id, guid } = await commentOfQuin(post)
    await Mention.query(pod.db).insert({ personId: named.id, commentId: id })

    await relay(guid)

    expect(await sentAbout(pod, guid)).toMatchObject([{ to: ['n.example', 'r.example'] }])
  })

  it('do not go to people whom moderators block', async () => {
    const post = await postWithSubscribers()
    const { guid } = await commentOfQuin(post)
    await pod.db('people').where({ id: remy.id }).update({ restriction: 'block' })

    await relay(guid)
    await pod.db('people').where({ id: remy.id }).update({ restriction: null })

    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([0, 0])
  })

  it('take as many statements as one', async () => {
    const post = await postWithSubscribers()
    const [first, ...others] = await Promise.all(Array.from({ length: 33 }, () => commentOfQuin(post)))
    const one = await statementsDuring(() => relay(first?.guid ?? ''), 'worker')
    const many = await statementsDuring(() => relay(...others.map(({ guid }) => guid)), 'worker')

    expect(many).toBe(one)
    expect(await pod.rows('deliveries')).toEqual([33])
  })

  it('leave out what is gone, and repeat nothing', async () => {
    const post = await postWithSubscribers()
    const { guid } = await commentOfQuin(post)

    await relay(guid, newGuid())
    await relay(guid)

    expect(await pod.rows('outbound_messages', 'deliveries')).toEqual([1, 1])
  })

  it('are few for a pod that has never answered, and those left out are counted', async () => {
    const post = await postWithSubscribers()
    await pod.db('pods').update({ answeredAt: null })
    const comments = await Promise.all(Array.from({ length: 20 }, () => commentOfQuin(post)))

    await relay(...comments.slice(0, 2).map(({ guid }) => guid))
    await relay(...comments.slice(2).map(({ guid }) => guid))

    expect(await pod.rows('deliveries')).toEqual([UNDELIVERED_LIMITS.relaysOfNeverAnsweredPod])
    const [row] = await pod.db('pods').where({ host: 'r.example' })
    expect(row.skippedDeliveries).toBe(20 - UNDELIVERED_LIMITS.relaysOfNeverAnsweredPod)
  })
})
