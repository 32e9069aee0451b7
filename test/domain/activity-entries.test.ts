import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createLike } from '../../src/domain/interactions/likes.js'
import { mutePost, subscribeToPost } from '../../src/domain/interactions/post-interactions.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import type { Post } from '../../src/persistence/models/post.js'
import { viewerOf } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let test: TestPod
let ann: Viewer
let ben: Viewer
let cem: Viewer
beforeAll(async () => {
  test = await buildPod()
  const people = await test.people('ann', 'ben', 'cem')
  ann = await viewerOf(test.pod, people.ann)
  ben = await viewerOf(test.pod, people.ben)
  cem = await viewerOf(test.pod, people.cem)
})
afterAll(() => test.close())

const publish = () => publishPost(test.pod, ann, { text: 'Tea?', public: true })

/** Whom the post concerns, and whether each of them knows when it was last commented on. */
async function findInvolved({ id }: Pick<Post, 'id'>): Promise<Record<string, boolean>> {
  const rows = await test.pod
    .db('activity_entries')
    .join('posts', 'posts.id', 'activity_entries.postId')
    .join('users', 'users.id', 'activity_entries.userId')
    .where('posts.id', id)
    .select('users.username', test.pod.db.raw('activity_entries.interacted_at = posts.interacted_at as up_to_date'))
  return Object.fromEntries(rows.map(({ username, upToDate }) => [username, upToDate]))
}

it('activity entries begin with the post for its author, and with the first interaction for others', async () => {
  const post = await publish()
  expect(await findInvolved(post)).toEqual({ ann: true })

  await createLike(test.pod, ben, { postGuid: post.guid })
  await subscribeToPost(test.pod, cem, post.guid)

  expect(await findInvolved(post)).toEqual({ ann: true, ben: true, cem: true })
})

it('activity entries of the author of a root begin with a reshare', async () => {
  const root = await publish()

  const reshare = await createReshare(test.pod, ben, root.guid)

  expect(await findInvolved(root)).toEqual({ ann: true, ben: true })
  expect(await findInvolved(reshare)).toEqual({ ben: true, ann: true })
})

it('activity entries move forward with each comment, also for users who muted the post', async () => {
  const post = await publish()
  await subscribeToPost(test.pod, ben, post.guid)
  await mutePost(test.pod, ben, post.guid)
  await createComment(test.pod, cem, { postGuid: post.guid, text: 'Yes' })
  await subscribeToPost(test.pod, ben, post.guid)

  expect(await findInvolved(post)).toEqual({ ann: true, ben: true, cem: true })
})

it('activity entries include a comment that was written at the same time', async () => {
  for (let round = 0; round < 20; round += 1) {
    const post = await publish()
    await Promise.all([
      createComment(test.pod, cem, { postGuid: post.guid, text: 'Yes' }),
      createLike(test.pod, ben, { postGuid: post.guid }),
      createComment(test.pod, ann, { postGuid: post.guid, text: 'Milk?' }),
    ])

    expect(await findInvolved(post)).toEqual({ ann: true, ben: true, cem: true })
  }
})
