import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createLike } from '../../src/domain/interactions/likes.js'
import { mutePost, setPostHidden, subscribeToPost } from '../../src/domain/interactions/post-interactions.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import type { Post } from '../../src/persistence/models/post.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost } from '../support/databases/rows.js'
import { type DomainPod, openDomainPod } from '../support/pods/domain-pod.js'

let domainPod: DomainPod
let ann: Viewer
let ben: Viewer
let cem: Viewer
beforeAll(async () => {
  domainPod = await openDomainPod()
  ann = domainPod.ann
  ben = domainPod.ben
  cem = domainPod.cem
})
afterAll(() => domainPod.close())
afterEach(async () => {
  await domainPod.pod.db('notifications').delete()
  await domainPod.dispatched()
})

const publish = () => publishPost(domainPod.pod, ann, { text: 'Good morning', public: true })
const comment = (viewer: Viewer, post: Post) =>
  createComment(domainPod.pod, viewer, { postGuid: post.guid, text: 'Well said' })

describe('subscribing', () => {
  it('subscribes the viewer to the post, once', async () => {
    const post = await publish()

    await subscribeToPost(domainPod.pod, ben, post.guid)
    await comment(cem, post)

    expect(await domainPod.notificationsOf(ben)).toEqual([['also_commented', 'cem@pod.example']])
    expect(await reasonOf(subscribeToPost(domainPod.pod, ben, post.guid))).toBe('already_subscribed')
    expect(await domainPod.participationsOf(post)).toMatchObject([{ count: 1 }, { count: 1 }])
  })

  it('is not needed after a like of the post', async () => {
    const post = await publish()
    await createLike(domainPod.pod, ben, { postGuid: post.guid })

    expect(await reasonOf(subscribeToPost(domainPod.pod, ben, post.guid))).toBe('already_subscribed')
  })

  it('sends a participation to a remote author, and none for a local post', async () => {
    const theirs = await addPost(domainPod.pod, domainPod.quin)
    const ours = await publish()
    await domainPod.dispatched()

    await subscribeToPost(domainPod.pod, ben, theirs.guid)
    await subscribeToPost(domainPod.pod, ben, ours.guid)

    const [participation] = await domainPod.participationsOf(theirs)
    expect(await domainPod.dispatched()).toEqual([{ record: 'participation', guid: participation?.guid }])
  })
})

describe('a participation that is made again', () => {
  const participateBySubscribing = async (post: Post) => {
    await subscribeToPost(domainPod.pod, ben, post.guid)
    const [participation] = await domainPod.participationsOf(post)
    return participation?.guid
  }

  it('has the same guid: diaspora* refuses a second one', async () => {
    const theirs = await addPost(domainPod.pod, domainPod.quin)
    const first = await participateBySubscribing(theirs)
    await domainPod.pod.db('participations').where({ guid: first }).delete()
    expect(await participateBySubscribing(theirs)).toBe(first)

    await domainPod.pod.db('participations').where({ guid: first }).delete()
    await comment(ben, theirs)
    expect(await domainPod.participationsOf(theirs)).toMatchObject([{ guid: first }])
  })

  it('has another one when a different row has taken it', async () => {
    const [theirs, ours] = [await addPost(domainPod.pod, domainPod.quin), await publish()]
    const first = await participateBySubscribing(theirs)
    await domainPod.pod.db('participations').where({ guid: first }).update({ postId: ours.id, authorId: cem.personId })

    const second = await participateBySubscribing(theirs)

    expect(second).toMatch(/^[0-9a-f]{32}$/)
    expect(second).not.toBe(first)
  })
})

describe('muting', () => {
  it('ends notifications about the post, and sends nothing', async () => {
    const post = await publish()
    await createLike(domainPod.pod, ben, { postGuid: post.guid })
    await comment(ben, post)
    await domainPod.dispatched()

    await mutePost(domainPod.pod, ben, post.guid)
    await comment(cem, post)

    expect((await domainPod.participationsOf(post)).map(({ authorId }) => authorId)).toEqual([cem.personId])
    expect(await domainPod.notificationsOf(ben)).toEqual([])
    expect(await domainPod.dispatched()).toMatchObject([{ record: 'comment' }])
  })

  it('works for one’s own post too', async () => {
    const post = await publish()
    await subscribeToPost(domainPod.pod, ann, post.guid)

    await mutePost(domainPod.pod, ann, post.guid)
    await comment(ben, post)
    await createLike(domainPod.pod, ben, { postGuid: post.guid })

    expect(await domainPod.notificationsOf(ann)).toEqual([])
  })

  it('is refused without a subscription', async () => {
    const post = await publish()

    expect(await reasonOf(mutePost(domainPod.pod, ben, post.guid))).toBe('not_subscribed')
    await subscribeToPost(domainPod.pod, ben, post.guid)
    expect(await reasonOf(mutePost(domainPod.pod, ben, post.guid))).toBe('done')
    expect(await reasonOf(mutePost(domainPod.pod, ben, post.guid))).toBe('not_subscribed')
  })

  it('ends when the viewer subscribes or comments again', async () => {
    for (const again of [
      (post: Post) => subscribeToPost(domainPod.pod, ben, post.guid),
      (post: Post) => comment(ben, post),
    ]) {
      const post = await publish()
      await subscribeToPost(domainPod.pod, ben, post.guid)
      await mutePost(domainPod.pod, ben, post.guid)

      await again(post)
      await comment(cem, post)

      expect(await domainPod.notificationsOf(ben)).toEqual([['also_commented', 'cem@pod.example']])
      await domainPod.pod.db('notifications').delete()
    }
  })
})

describe('hiding', () => {
  it('is done and undone, and reports if nothing changes', async () => {
    const post = await publish()

    expect(await reasonOf(setPostHidden(domainPod.pod, ben, post.guid, false))).toBe('not_hidden')
    expect(await reasonOf(setPostHidden(domainPod.pod, ben, post.guid, true))).toBe('done')
    expect(await reasonOf(setPostHidden(domainPod.pod, ben, post.guid, true))).toBe('already_hidden')
    expect(await reasonOf(setPostHidden(domainPod.pod, cem, post.guid, false))).toBe('not_hidden')
    expect(await reasonOf(setPostHidden(domainPod.pod, ben, post.guid, false))).toBe('done')
    expect(await domainPod.pod.db('hiddenPosts')).toEqual([])
  })

  it('ends notifications about comments of others', async () => {
    const post = await publish()
    await subscribeToPost(domainPod.pod, ben, post.guid)
    await setPostHidden(domainPod.pod, ben, post.guid, true)

    await comment(cem, post)

    expect(await domainPod.notificationsOf(ben)).toEqual([])
  })
})

it.each([
  ['subscribing', (guid: string) => subscribeToPost(domainPod.pod, ben, guid)],
  ['muting', (guid: string) => mutePost(domainPod.pod, ben, guid)],
  ['hiding', (guid: string) => setPostHidden(domainPod.pod, ben, guid, true)],
])('%s needs a post that the viewer can see', async (_, act) => {
  const hidden = await addPost(domainPod.pod, { id: ann.personId }, { public: false })

  expect(await reasonOf(act(hidden.guid))).toBe('post_not_found')
  expect(await reasonOf(act(newGuid()))).toBe('post_not_found')
})
