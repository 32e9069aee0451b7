import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Post } from '../../../src/persistence/models/post.js'
import type { ReshareEntity } from '../../../src/protocol/entities/posts.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy, reshareBy } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
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
beforeEach(() => pod.empty('posts, notifications, outbox, waiting, tombstones'))

/** What is to be done, of this name. */
async function work(name: string): Promise<readonly unknown[]> {
  return pod.db('outbox').where({ name }).orderBy('id').pluck('data')
}

async function notifications(): Promise<readonly unknown[]> {
  return pod.db('notifications').orderBy('id').select('userId', 'type')
}

describe('a public post', () => {
  it('makes this pod participate in it, once', async () => {
    const post = postBy(quin)
    await receive(pod, publicMessage(quin, post), publicMessage(quin, post))
    await receive(pod, publicMessage(quin, post))

    expect(await work('participate')).toEqual([{ postGuids: [post.guid] }])
  })

  it('shares one participation job with the other posts of its batch', async () => {
    const [one, other] = [postBy(quin), postBy(remy)]
    await receive(
      pod,
      publicMessage(quin, one),
      publicMessage(remy, other),
      privateMessage(quin, ann, postBy(quin, { public: false })),
    )

    const [data, ...more] = await pod.db('outbox').where({ name: 'participate' }).pluck('data')
    expect(more).toEqual([])
    expect(data.postGuids.toSorted()).toEqual([one.guid, other.guid].toSorted())
  })

  it('shares one announcement job with its batch; the notifications of the batch have another one', async () => {
    const [one, other] = [postBy(quin, { text: `@{${ann.address}} hello` }), postBy(remy)]
    await receive(pod, publicMessage(quin, one), publicMessage(remy, other))

    const ids = await Post.query(pod.db).whereIn('guid', [one.guid, other.guid]).orderBy('id')
    const [notification] = await pod.db('notifications').pluck('id')
    expect(await work('announce')).toEqual([{ posts: ids.map(({ id }) => id) }, { notifications: [notification] }])
  })

  it('causes no work on a pod without users', async () => {
    const empty = await openFederationPod()
    const author = await empty.addRemotePerson('una@u.example')
    const todo = () => empty.db('outbox').orderBy('name').pluck('name')
    await receive(empty, publicMessage(author, postBy(author)))
    expect(await todo()).toEqual([])

    await addLocalUser(empty, 'first')
    await receive(empty, publicMessage(author, postBy(author)))
    expect(await todo()).toEqual(['announce', 'participate'])
    await empty.close()
  })

  it('notifies mentioned local people, and enqueues lookups of unknown ones', async () => {
    const text = `@{${ann.address}} @{${remy.address}} @{unknown@s.example} @{nobody@pod.example}`
    const post = postBy(quin, { text })
    await receive(pod, publicMessage(quin, post))

    expect(await notifications()).toEqual([{ userId: ann.userId, type: 'mentioned' }])
    const arrivedIn = { posts: await pod.db('posts').where({ guid: post.guid }).pluck('id'), comments: [] }
    expect(await work('discover-mentioned')).toEqual([{ address: 'unknown@s.example', arrivedIn }])
  })

  it('causes fetches of ten of its links', async () => {
    const guids = Array.from({ length: 30 }, newGuid)
    const known = postBy(remy)
    const text = guids.map((guid) => `diaspora://${remy.address}/post/${guid}`).join(' ')
    const links = [
      `diaspora://${remy.address}/post/${known.guid}`,
      `diaspora://${ann.address}/post/${newGuid()}`,
      `diaspora://${remy.address}/comment/${guids[0]}`,
    ]
    await receive(
      pod,
      publicMessage(remy, known),
      publicMessage(quin, postBy(quin, { text })),
      publicMessage(quin, postBy(quin, { text: links.join(' ') })),
    )

    const { address: author } = remy
    const posts = guids
      .slice(0, 10)
      .map((guid) => ({ type: 'post', guid, from: author, author, depth: 1, fetchesLeft: 2 }))
    const wanted = [...posts, { type: 'comment', guid: guids[0], from: author, depth: 1, fetchesLeft: 14 }]
    const asked = await work('fetch-linked')
    expect(asked).toHaveLength(wanted.length)
    expect(asked).toEqual(expect.arrayContaining(wanted))
  })
})

describe('a comment', () => {
  it('notifies the author of the post and mentioned people, and causes fetches of its links', async () => {
    const { ben } = await pod.localUsers('ben')
    const post = await addPost(pod, ann)
    const guid = newGuid()
    const text = `@{${ben.address}} @{late@s.example}, see diaspora://${remy.address}/post/${guid}`

    expect(await receive(pod, publicMessage(quin, commentBy(quin, post, { text })))).toEqual(allStored)

    const sent = await notifications()
    expect(sent).toHaveLength(2)
    expect(sent).toContainEqual({ userId: ann.userId, type: 'commented_on_post' })
    expect(sent).toContainEqual({ userId: ben.userId, type: 'mentioned_in_comment' })
    const arrivedIn = { posts: [], comments: await pod.db('comments').pluck('id') }
    expect(await work('discover-mentioned')).toEqual([{ address: 'late@s.example', arrivedIn }])
    expect(await work('fetch-linked')).toMatchObject([{ guid }])
  })
})

describe('a reshare', () => {
  const columns = ['authorId', 'postId', 'count'] as const

  it('of a local post raises its counter, notifies its author and makes them participate', async () => {
    const root = await addPost(pod, ann)
    const reshare = reshareBy(quin, { guid: root.guid, author: ann.address })

    expect(await receive(pod, publicMessage(quin, reshare), publicMessage(quin, reshare))).toEqual(allStored)

    const { id } = await Post.query(pod.db).findOne({ guid: reshare.guid }).throwIfNotFound()
    expect(await Post.query(pod.db).findById(root.id)).toMatchObject({ resharesCount: 1 })
    expect(await notifications()).toEqual([{ userId: ann.userId, type: 'reshared' }])
    expect(await pod.db('participations').select(...columns)).toEqual([{ authorId: ann.id, postId: id, count: 1 }])
    expect(await work('participate')).toEqual([{ postGuids: [reshare.guid] }])
  })

  it('of a remote post makes no local person participate', async () => {
    const root = postBy(remy)

    expect(await receive(pod, publicMessage(remy, root), publicMessage(quin, reshareBy(quin, root)))).toEqual(allStored)
    expect(await pod.rows('participations', 'notifications')).toEqual([0, 0])
  })

  it('of a reshare in the same batch is resumed immediately', async () => {
    const root = postBy(remy)
    const first = reshareBy(quin, root)
    const second = reshareBy(remy, first)
    const comment = commentBy(quin, first)

    expect(
      await receive(
        pod,
        publicMessage(remy, root),
        publicMessage(quin, first),
        publicMessage(remy, second),
        publicMessage(quin, comment),
      ),
    ).toEqual({
      ...allStored,
      waiting: [`post:${first.guid}`],
    })

    expect(await pod.rows('posts', 'comments', 'waiting')).toEqual([2, 1, 0])
    expect(await work('receive-public')).toMatchObject([{ times: 1, last: false }])
    expect(await receive(pod, publicMessage(remy, second))).toEqual(allStored)
    expect(await Post.query(pod.db).orderBy('id').select('guid', 'resharesCount')).toMatchObject([
      { guid: root.guid, resharesCount: 1 },
      { guid: first.guid, resharesCount: 1 },
      { guid: second.guid, resharesCount: 0 },
    ])
  })

  it('of the same root by the same person is ignored', async () => {
    const root = postBy(remy)
    await receive(pod, publicMessage(remy, root), publicMessage(quin, reshareBy(quin, root)))

    expect(await receive(pod, publicMessage(quin, reshareBy(quin, root)))).toEqual({ ...allStored, ignored: 1 })
    expect(await Post.query(pod.db).findOne({ guid: root.guid })).toMatchObject({ resharesCount: 1 })
  })

  it.each<readonly [string, (root: Post) => ReshareEntity, object]>([
    ['of something that is gone', () => reshareBy(quin), allStored],
    [
      'of an unknown local post',
      () => reshareBy(quin, { guid: newGuid(), author: ann.address }),
      { ...allStored, rejected: ['NotFetchable'] },
    ],
    [
      'that names another author',
      ({ guid }) => reshareBy(quin, { guid, author: remy.address }),
      { ...allStored, rejected: ['ValidationError'] },
    ],
  ])('%s', async (_what, make, end) => {
    expect(await receive(pod, publicMessage(quin, make(await addPost(pod, ann))))).toEqual(end)
  })

  it('of a private local post is rejected', async () => {
    const { guid } = await addPost(pod, ann, { public: false })

    expect(await receive(pod, publicMessage(quin, reshareBy(quin, { guid, author: ann.address })))).toEqual({
      ...allStored,
      rejected: ['NotAllowed'],
    })
  })
})
