import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import { Post } from '../../src/persistence/models/post.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost, participationsOf, showPost } from '../support/databases/rows.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

describe('resharing', () => {
  let pod: TestPod
  let ann: Viewer
  let ben: Viewer
  let cem: Viewer
  beforeAll(async () => {
    pod = await buildPod()
    const people = await pod.people('ann', 'ben', 'cem')
    ann = await viewerOf(pod.pod, people.ann)
    ben = await viewerOf(pod.pod, people.ben)
    cem = await viewerOf(pod.pod, people.cem)
  })
  afterAll(() => pod.close())

  const publish = () => publishPost(pod.pod, ann, { text: 'Good morning', public: true })
  const reshare = (viewer: Viewer, guid: string) => createReshare(pod.pod, viewer, guid)

  it('shows the root, counts there, and subscribes each author to the post of the other', async () => {
    const root = await publish()

    const shared = await reshare(ben, root.guid)

    expect(shared).toMatchObject({ type: 'Reshare', public: true, rootId: root.id, text: '' })
    expect(await Post.query(pod.pod.db).findById(root.id)).toMatchObject({ resharesCount: 1 })
    expect(await participationsOf(pod.pod, root)).toEqual([{ authorId: ben.personId, count: 1 }])
    expect(await participationsOf(pod.pod, shared)).toEqual([{ authorId: ann.personId, count: 1 }])
  })

  it('does not subscribe remote authors: their own pod does', async () => {
    const root = await addPost(pod.pod, await addRemotePerson(pod.pod, 'quin@q.example'))

    expect(await participationsOf(pod.pod, await reshare(ben, root.guid))).toEqual([])
  })

  it('of a reshare shows the original post', async () => {
    const root = await publish()
    const { id: remoteId } = await addRemotePerson(pod.pod, 'remy@r.example')
    const first = await addPost(pod.pod, { id: remoteId }, { type: 'Reshare', text: '', rootId: root.id })
    const second = await addPost(pod.pod, await addRemotePerson(pod.pod, 'sam@s.example'), {
      type: 'Reshare',
      text: '',
      rootId: first.id,
    })

    expect(await reshare(cem, second.guid)).toMatchObject({ rootId: root.id })
  })

  it('succeeds once of several simultaneous requests', async () => {
    const root = await publish()

    const outcomes = await Promise.all(Array.from({ length: 5 }, () => reasonOf(reshare(ben, root.guid))))

    expect(outcomes.sort()).toEqual([...Array.from({ length: 4 }, () => 'already_reshared'), 'done'])
    expect(await Post.query(pod.pod.db).findById(root.id)).toMatchObject({ resharesCount: 1 })
    expect(await participationsOf(pod.pod, root)).toEqual([{ authorId: ben.personId, count: 1 }])
  })

  it('is refused for posts that are missing, not public, one’s own or deleted', async () => {
    const own = await publish()
    const hidden = await addPost(pod.pod, { id: ann.personId }, { public: false })
    await showPost(pod.pod, hidden, ben)
    const empty = await addPost(pod.pod, { id: cem.personId }, { type: 'Reshare', text: '' })

    expect(await reasonOf(reshare(ben, newGuid()))).toBe('post_not_found')
    expect(await reasonOf(reshare(ben, hidden.guid))).toBe('not_public')
    expect(await reasonOf(reshare(ann, own.guid))).toBe('own_post')
    expect(await reasonOf(reshare(ben, empty.guid))).toBe('root_not_found')
    const shared = await reshare(ben, own.guid)
    expect(await reasonOf(reshare(ann, shared.guid))).toBe('own_post')
  })
})
