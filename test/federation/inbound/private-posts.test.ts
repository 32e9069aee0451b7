import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { Post } from '../../../src/persistence/models/post.js'
import type { StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { commentBy, photoBy, postBy } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})
afterAll(() => pod.close())
beforeEach(() => pod.empty('posts, photos, notifications, outbox, waiting, tombstones'))

function secret(fields: Partial<StatusMessageEntity> = {}): StatusMessageEntity {
  return postBy(quin, { public: false, photos: [photoBy(quin, { public: false })], ...fields })
}

/** Whom the posts and the photos are shown to. */
async function readers(): Promise<readonly (readonly number[])[]> {
  return [
    await pod.db('postVisibilities').orderBy('userId').pluck('user_id'),
    await pod.db('photoVisibilities').orderBy('userId').pluck('user_id'),
  ]
}

describe('a private post', () => {
  it('is shown with its photos to its recipient', async () => {
    const post = secret()

    expect(await receive(pod, privateMessage(quin, ann, post))).toEqual(allStored)

    expect(await Post.query(pod.db)).toMatchObject([{ guid: post.guid, public: false }])
    expect(await readers()).toEqual([[ann.userId], [ann.userId]])
  })

  it.each([
    [
      'at the same time',
      async (...both: Parameters<typeof privateMessage>[]) => [
        await receive(pod, ...both.map((one) => privateMessage(...one))),
      ],
    ],
    [
      'one after the other',
      async (...both: Parameters<typeof privateMessage>[]) => [
        await receive(pod, ...both.slice(0, 1).map((one) => privateMessage(...one))),
        await receive(pod, ...both.slice(1).map((one) => privateMessage(...one))),
        await receive(pod, ...both.slice(1).map((one) => privateMessage(...one))),
      ],
    ],
  ])('arrives once for each of its readers, %s', async (_when, arrive) => {
    const post = secret({ text: `@{${ann.address}} and @{${ben.address}}` })

    const ended = await arrive([quin, ann, post], [quin, ben, post])

    expect(ended).toEqual(ended.map(() => allStored))
    expect(await pod.rows('posts', 'photos', 'mentions')).toEqual([1, 1, 2])
    expect(await readers()).toEqual([
      [ann.userId, ben.userId],
      [ann.userId, ben.userId],
    ])
    expect(await pod.db('notifications').orderBy('userId').select('userId', 'type')).toEqual([
      { userId: ann.userId, type: 'mentioned' },
      { userId: ben.userId, type: 'mentioned' },
    ])
  })

  it('notifies no mentioned person who did not receive it', async () => {
    await receive(pod, privateMessage(quin, ann, secret({ text: `About @{${ben.address}}` })))

    expect(await pod.rows('mentions', 'notifications')).toEqual([1, 0])
  })

  it('of another author is not shown by a post with the same guid', async () => {
    const post = secret()
    await receive(pod, privateMessage(quin, ann, post))

    const ended = await receive(
      pod,
      privateMessage(remy, ben, { ...secret({ photos: [] }), guid: post.guid, author: remy.address }),
    )

    expect(ended).toEqual({ ...allStored, rejected: ['InvalidAuthor'] })
    expect(await readers()).toEqual([[ann.userId], [ann.userId]])
  })

  it('causes no participation', async () => {
    await receive(pod, privateMessage(quin, ann, secret()))

    expect(await pod.db('outbox').pluck('name')).toEqual(['announce'])
  })

  it('does not wait, and resumes its waiting comments', async () => {
    const post = secret()
    const comment = commentBy(remy, post)

    expect(await receive(pod, privateMessage(quin, ann, comment))).toEqual({
      ...allStored,
      waiting: [`post:${post.guid}`],
    })
    await receive(pod, privateMessage(quin, ann, post))

    expect(await pod.db('outbox').where({ name: 'receive-private' }).select('data')).toMatchObject([
      { data: { recipientGuid: ann.guid } },
    ])
  })
})

it('a public post that arrives encrypted is shown to everyone', async () => {
  const post = postBy(quin)

  expect(await receive(pod, privateMessage(quin, ann, post))).toEqual(allStored)

  expect(await Post.query(pod.db)).toMatchObject([{ guid: post.guid, public: true }])
  expect(await readers()).toEqual([[], []])
})

it('a private post in a public message is rejected', async () => {
  expect(await receive(pod, publicMessage(quin, secret()))).toEqual({ ...allStored, rejected: ['NotPublic'] })
})
