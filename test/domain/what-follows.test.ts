import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import type { Pod } from '../../src/pod/pod.js'
import { addAspect } from '../support/federation/outbound-messages.js'
import { addPost } from '../support/people/remote-people.js'
import { openVillage, type Village } from '../support/pods/domain-pod.js'

/** Notifications and messages to other pods, in the transaction of their cause. */
describe('what follows', () => {
  let village: Village
  let pod: Pod
  let ann: Viewer
  let ben: Viewer
  let cem: Viewer
  beforeAll(async () => {
    village = await openVillage()
    ;({ pod, ann, ben, cem } = village)
  })
  afterAll(() => village.close())
  beforeEach(async () => {
    await pod.db('notifications').delete()
    await village.dispatched()
  })

  it('from a public post: mentioned people are notified, and other pods receive it', async () => {
    const text = 'Good morning @{ben@pod.example} and @{ann@pod.example}'

    const { guid } = await publishPost(pod, ann, { text, public: true })

    expect(await village.notificationsOf(ben)).toEqual([['mentioned', 'ann@pod.example']])
    expect(await village.notificationsOf(ann)).toEqual([])
    expect(await village.dispatched()).toEqual([{ record: 'post', guid }])
  })

  it('from a private post: only those it is for are told', async () => {
    const aspectId = await addAspect(pod, ann.userId, [{ id: ben.personId }])
    const text = 'Good morning @{ben@pod.example} and @{cem@pod.example}'

    const { guid } = await publishPost(pod, ann, { text, public: false, aspectIds: [aspectId] })

    expect(await village.notificationsOf(ben)).toEqual([['mentioned', 'ann@pod.example']])
    expect(await village.notificationsOf(cem)).toEqual([])
    expect(await village.dispatched()).toEqual([{ record: 'post', guid }])
  })

  it('from a comment: the author, whoever it mentions and whoever takes part are told', async () => {
    const { guid: postGuid } = await publishPost(pod, ann, { text: 'Good morning', public: true })
    await createComment(pod, ben, { postGuid, text: 'Good morning' })
    await pod.db('notifications').delete()
    await village.dispatched()

    const { guid } = await createComment(pod, cem, { postGuid, text: 'Hello @{ann@pod.example}' })

    expect(await village.notificationsOf(ann)).toEqual([['mentioned_in_comment', 'cem@pod.example']])
    expect(await village.notificationsOf(ben)).toEqual([['also_commented', 'cem@pod.example']])
    expect(await village.dispatched()).toEqual([{ record: 'comment', guid }])
  })

  it('from a reshare: the author of the root is told', async () => {
    const root = await publishPost(pod, ann, { text: 'Good morning', public: true })
    await village.dispatched()

    const { guid } = await createReshare(pod, ben, root.guid)

    expect(await village.notificationsOf(ann)).toEqual([['reshared', 'ben@pod.example']])
    expect(await village.dispatched()).toEqual([{ record: 'post', guid }])
  })

  it('from a reshare of something from elsewhere: its author is asked for the rest', async () => {
    const root = await addPost(pod, village.quin)

    const { guid } = await createReshare(pod, ben, root.guid)

    const [participation] = await village.participationsOf(root)
    expect(await village.dispatched()).toEqual([
      { record: 'participation', guid: participation?.guid },
      { record: 'post', guid },
    ])
  })

  it('is all there or not at all, together with what it follows from', async () => {
    const { id, guid: postGuid } = await publishPost(pod, ann, { text: 'Good morning', public: true })
    await village.dispatched()
    await pod.db.raw(`alter table outbox add constraint no_dispatch check (name <> 'dispatch')`)

    await expect(createComment(pod, ben, { postGuid, text: 'Hello' })).rejects.toThrow(/no_dispatch/)

    await pod.db.raw(`alter table outbox drop constraint no_dispatch`)
    expect(await village.notificationsOf(ann)).toEqual([])
    expect(await village.participationsOf({ id })).toEqual([])
    expect(await pod.db('comments').where({ postId: id })).toEqual([])
  })
})
