import { afterAll, beforeAll, expect, it } from 'vitest'
import { undoAction } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { cleanCluster } from '../../../src/domain/moderation/clusters/clean-cluster.js'
import { cleaningTaskHandlers } from '../../../src/domain/moderation/clusters/cleaning-work.js'
import { listSpamClusters } from '../../../src/domain/moderation/clusters/clusters.js'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import type { Post } from '../../../src/persistence/models/post.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy } from '../../support/federation/entities.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'
import { finishBackgroundTasks } from '../../support/pods/finish-background-tasks.js'

const PODS = 8
const PEOPLE = 40
const ITEMS = 400
const MAX_REQUESTS = 10

let pod: FederationPod
beforeAll(async () => {
  pod = await openFederationPod()
})
afterAll(() => pod.close())

it('a wave of 400 items by 40 people of 8 pods is cleaned in at most ten requests, and the undo shows wrongly hidden items again', async () => {
  const { ann, bob } = await pod.localUsers('ann', 'bob')
  const posts = await Promise.all([ann, ann, ann, bob, bob].map((user) => addPost(pod, user)))
  const spammers = await Promise.all(
    Array.from({ length: PEOPLE }, (_, index) => pod.addRemotePerson(`spam${index}@wave${index % PODS}.example`)),
  )
  const friend = await pod.addRemotePerson('friend@f.example')
  await pod.db('contacts').insert({ userId: ann.userId, personId: friend.id, receiving: true })
  await findClusters(pod)
  const honest = commentBy(friend, firstOf(posts), { text: 'What do you think of https://win.example/now?' })
  const wave = Array.from({ length: ITEMS }, (_, index) => {
    const spammer = spammers[index % PEOPLE] ?? firstOf(spammers)
    const post = posts[index % posts.length] ?? firstOf(posts)
    return publicMessage(spammer, itemOf(spammer, post, ann.address, index))
  })
  for (let start = 0; start < wave.length; start += 100) {
    expect(await receive(pod, ...wave.slice(start, start + 100))).toEqual(allStored)
    await findClusters(pod)
  }
  await receive(pod, publicMessage(friend, honest))
  await findClusters(pod)
  const selectNotifications = () => pod.db('notifications').whereIn('userId', [ann.userId, bob.userId])
  expect((await selectNotifications()).length).toBeGreaterThan(0)

  let requests = 1
  const open = await listSpamClusters(pod, COMMAND_ACTOR, { states: ['open'] }, { limit: 100 })
  const actions: number[] = []
  for (const { id } of open.items) {
    const parts = { hide: true, remove: false, filter: true, authors: 'none', pods: 'none', except: [] } as const
    const { action } = await cleanCluster(pod, COMMAND_ACTOR, { id, ...parts }, { reason: 'Spam wave' })
    await finishBackgroundTasks(pod, cleaningTaskHandlers)
    requests += 1
    if (action !== undefined) actions.push(action.id)
  }

  expect(requests).toBeLessThanOrEqual(MAX_REQUESTS)
  const selectShownComments = () => pod.db('comments').where({ hidden: false })
  expect(await selectShownComments()).toEqual([])
  expect(await pod.db('posts').where({ public: true })).toHaveLength(posts.length)
  expect(await pod.db('posts').where('commentsCount', '>', 0)).toEqual([])
  expect(await selectNotifications()).toEqual([])
  const later = spammers.slice(0, 3).map((spammer) => {
    return publicMessage(spammer, postBy(spammer, { text: 'The cheapest watches of the whole world, again' }))
  })
  expect(await receive(pod, ...later)).toEqual(allStored)
  expect(await pod.db('posts').where({ public: true })).toHaveLength(posts.length)

  for (const id of actions) await undoAction(pod, COMMAND_ACTOR, id, { reason: 'The friend was hit too' })
  await finishBackgroundTasks(pod, cleaningTaskHandlers)
  expect((await selectShownComments()).map(({ guid }) => guid)).toContain(honest.guid)
})

/** Three patterns: a link, a text, and a set of mentions. */
function itemOf(spammer: FakePerson, post: Post, mentioned: string, index: number) {
  if (index % 3 === 0)
    return commentBy(spammer, post, { text: `Win ${index} Euro at https://win.example/now?id=${index}` })
  if (index % 3 === 1) {
    return postBy(spammer, { text: `@{${mentioned}} the cheapest watches of the whole world, ${index} pieces left` })
  }
  return commentBy(spammer, post, { text: `${index} @{ann@pod.example} @{bob@pod.example} @{friend@f.example}` })
}

function firstOf<Item>(items: readonly Item[]): Item {
  const [first] = items
  if (first === undefined) throw new Error('There is no item.')
  return first
}
