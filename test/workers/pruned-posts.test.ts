import { expect, it } from 'vitest'
import { prune } from '../../src/domain/operations/prune.js'
import { commentBy, postBy } from '../support/federation/entities.js'
import { startFakePods } from '../support/federation/fake-pods.js'
import { startInboundPod } from '../support/pods/inbound-pod.js'

const DAYS = 90

it('a removed post is stored again with a late comment, without a request in the meantime and without a tombstone', async () => {
  await using fakePods = await startFakePods()
  await using pod = await startInboundPod({ fakePods })
  const quin = fakePods.person('quin@q.example')
  const remy = fakePods.person('remy@r.example')
  await pod.addRemotePerson(quin)
  await pod.addRemotePerson(remy)
  const post = postBy(quin)
  fakePods.serve(quin, post)
  await pod.postPublic(post, quin)
  await pod.waitUntilIdle()
  const old = new Date(Date.now() - 2 * DAYS * 86_400_000)
  await pod.db('posts').update({ createdAt: old, storedAt: old, interactedAt: old })
  const before = fakePods.requests.length

  const options = {
    days: DAYS,
    withComments: false,
    includeUnfetchable: false,
    notificationDays: 365,
    signal: new AbortController().signal,
  }
  expect(await prune(pod, { category: 'posts', ...options })).toMatchObject({ rows: 1 })
  expect(await pod.rows('posts', 'tombstones', 'outbox')).toEqual([0, 0, 0])
  expect(fakePods.requests.length).toBe(before)

  await pod.postPublic(commentBy(remy, post), quin)
  await pod.waitUntilIdle()

  expect(await pod.db('posts').select('guid', 'commentsCount')).toEqual([{ guid: post.guid, commentsCount: 1 }])
  expect(fakePods.requests.slice(before)).toContain(`q.example/fetch/post/${post.guid}`)
})
