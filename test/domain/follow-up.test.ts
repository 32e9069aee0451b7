import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import type { Services } from '../../src/services/services.js'
import { addPost } from '../support/databases/rows.js'
import { addAspect } from '../support/people/aspects.js'
import { type DomainPod, openDomainPod } from '../support/pods/domain-pod.js'

/** Notifications and messages to other pods, in the transaction of their cause. */
describe('the follow-up', () => {
  let domainPod: DomainPod
  let pod: Services
  let ann: Viewer
  let ben: Viewer
  let cem: Viewer
  beforeAll(async () => {
    domainPod = await openDomainPod()
    ;({ pod, ann, ben, cem } = domainPod)
  })
  afterAll(() => domainPod.close())
  beforeEach(async () => {
    await pod.db('notifications').delete()
    await domainPod.dispatched()
  })

  it('a public post notifies mentioned people and is sent to other pods', async () => {
    const text = 'Good morning @{ben@pod.example} and @{ann@pod.example}'

    const { guid } = await publishPost(pod, ann, { text, public: true })

    expect(await domainPod.notificationsOf(ben)).toEqual([['mentioned', 'ann@pod.example']])
    expect(await domainPod.notificationsOf(ann)).toEqual([])
    expect(await domainPod.dispatched()).toEqual([{ record: 'post', guid }])
  })

  it('a private post notifies only its recipients', async () => {
    const aspectId = await addAspect(pod, ann.userId, [{ id: ben.personId }])
    const text = 'Good morning @{ben@pod.example} and @{cem@pod.example}'

    const { guid } = await publishPost(pod, ann, { text, public: false, aspectIds: [aspectId] })

    expect(await domainPod.notificationsOf(ben)).toEqual([['mentioned', 'ann@pod.example']])
    expect(await domainPod.notificationsOf(cem)).toEqual([])
    expect(await domainPod.dispatched()).toEqual([{ record: 'post', guid }])
  })

  it('a comment notifies the author, mentioned people and participants', async () => {
    const { guid: postGuid } = await publishPost(pod, ann, { text: 'Good morning', public: true })
    await createComment(pod, ben, { postGuid, text: 'Good morning' })
    await pod.db('notifications').delete()
    await domainPod.dispatched()

    const { guid } = await createComment(pod, cem, { postGuid, text: 'Hello @{ann@pod.example}' })

    expect(await domainPod.notificationsOf(ann)).toEqual([['mentioned_in_comment', 'cem@pod.example']])
    expect(await domainPod.notificationsOf(ben)).toEqual([['also_commented', 'cem@pod.example']])
    expect(await domainPod.dispatched()).toEqual([{ record: 'comment', guid }])
  })

  it('a reshare notifies the author of the root', async () => {
    const root = await publishPost(pod, ann, { text: 'Good morning', public: true })
    await domainPod.dispatched()

    const { guid } = await createReshare(pod, ben, root.guid)

    expect(await domainPod.notificationsOf(ann)).toEqual([['reshared', 'ben@pod.example']])
    expect(await domainPod.dispatched()).toEqual([{ record: 'post', guid }])
  })

  it('a reshare of a remote post subscribes to the post', async () => {
    const root = await addPost(pod, domainPod.quin)

    const { guid } = await createReshare(pod, ben, root.guid)

    const [participation] = await domainPod.participationsOf(root)
    expect(await domainPod.dispatched()).toEqual([
      { record: 'participation', guid: participation?.guid },
      { record: 'post', guid },
    ])
  })

  it('is stored completely or not at all, together with its cause', async () => {
    const { id, guid: postGuid } = await publishPost(pod, ann, { text: 'Good morning', public: true })
    await domainPod.dispatched()
    await pod.db.raw(`alter table outbox add constraint no_dispatch check (name <> 'dispatch')`)

    await expect(createComment(pod, ben, { postGuid, text: 'Hello' })).rejects.toThrow(/no_dispatch/)

    await pod.db.raw(`alter table outbox drop constraint no_dispatch`)
    expect(await domainPod.notificationsOf(ann)).toEqual([])
    expect(await domainPod.participationsOf({ id })).toEqual([])
    expect(await pod.db('comments').where({ postId: id })).toEqual([])
  })
})
