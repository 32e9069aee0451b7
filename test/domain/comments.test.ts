import { createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Comment } from '../../src/persistence/models/comment.js'
import { Block } from '../../src/persistence/models/contact.js'
import { Person } from '../../src/persistence/models/person.js'
import { Post } from '../../src/persistence/models/post.js'
import { verifyRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost, participationsOf } from '../support/databases/rows.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

describe('commenting', () => {
  let pod: TestPod
  let ann: Viewer
  let ben: Viewer
  beforeAll(async () => {
    pod = await buildPod()
    const people = await pod.people('ann', 'ben')
    ann = await viewerOf(pod.pod, people.ann)
    ben = await viewerOf(pod.pod, people.ben)
  })
  afterAll(() => pod.close())

  const publish = () => publishPost(pod.pod, ann, { text: 'Good morning', public: true })
  const comment = (viewer: Viewer, post: Post, text: string) =>
    createComment(pod.pod, viewer, { postGuid: post.guid, text })

  it('is counted, and subscribes the commenter to the post', async () => {
    const post = await publish()

    const first = await comment(ben, post, ' Hello @{ann@pod.example} #Tea ')
    await comment(ben, post, 'Hello?')
    await comment(ann, post, 'Yes?')

    const stored = await Post.query(pod.pod.db).findById(post.id).throwIfNotFound()
    expect(stored.commentsCount).toBe(3)
    expect(stored.interactedAt.getTime()).toBeGreaterThanOrEqual(first.createdAt.getTime())
    expect(await participationsOf(pod.pod, post)).toEqual([{ authorId: ben.personId, count: 2 }])
    const read = await Comment.query(pod.pod.db).findById(first.id).withGraphFetched('mentionedPeople')
    expect(read).toMatchObject({ text: 'Hello @{ann@pod.example} #Tea', postId: post.id, authorId: ben.personId })
    expect(read?.mentionedPeople?.map(({ id }) => id)).toEqual([ann.personId])
    const tags = await pod.pod.db('taggings').join('tags', 'tags.id', 'tagId').where({ commentId: first.id })
    expect(tags).toMatchObject([{ name: 'tea', createdAt: stored.createdAt }])
  })

  it('is signed by its author on another person’s post', async () => {
    const post = await publish()
    const author = await Person.query(pod.pod.db).findById(ben.personId).throwIfNotFound()

    const { authorSignature, signedElements, guid, text, createdAt } = await comment(ben, post, 'A\r\nline; or two')

    const entity = {
      type: 'comment',
      author: author.address,
      guid,
      parent_guid: post.guid,
      text,
      created_at: createdAt,
      author_signature: authorSignature ?? '',
    } as const
    expect(verifyRelayable(entity, createPublicKey(author.publicKey))).toBe(true)
    expect(verifyRelayable({ ...entity, text: 'Another' }, createPublicKey(author.publicKey))).toBe(false)
    expect(signedElements?.map(([name]) => name)).toEqual(['author', 'guid', 'parent_guid', 'text', 'created_at'])
  })

  it('needs no signature on a post of one’s own', async () => {
    expect(await comment(ann, await publish(), 'Mine')).toMatchObject({ authorSignature: null, signedElements: null })
  })

  it('counts all of many simultaneous comments', async () => {
    const post = await publish()

    await Promise.all(Array.from({ length: 10 }, (_, index) => comment(index % 2 ? ann : ben, post, `${index} #same`)))

    expect(await Post.query(pod.pod.db).findById(post.id)).toMatchObject({ commentsCount: 10 })
    expect(await participationsOf(pod.pod, post)).toEqual([{ authorId: ben.personId, count: 5 }])
  })

  it('ends the muting of the post', async () => {
    const post = await publish()
    await pod.pod.db('mutedPosts').insert({ userId: ben.userId, postId: post.id })

    await comment(ben, post, 'I am back')

    expect(await pod.pod.db('mutedPosts').where({ postId: post.id })).toEqual([])
  })

  it('needs a post that the viewer can see', async () => {
    const hidden = await addPost(pod.pod, { id: ann.personId }, { public: false })
    const unknown = Object.assign(new Post(), { guid: newGuid() })

    expect(await reasonOf(comment(ben, hidden, 'Hello'))).toBe('post_not_found')
    expect(await reasonOf(comment(ben, unknown, 'Hello'))).toBe('post_not_found')
    expect(await reasonOf(comment(ann, hidden, 'Hello'))).toBe('done')
  })

  it.each([' \n\t', 'x'.repeat(65_536), 'a\u0001b'])('needs a text that others can read: %#', async (text) => {
    expect(await reasonOf(comment(ben, await publish(), text))).toBe('text_invalid')
  })

  it('is not for those whom the author of the post blocks', async () => {
    const post = await publish()
    const elsewhere = await addPost(pod.pod, await addRemotePerson(pod.pod, 'quin@q.example'))
    await Block.query(pod.pod.db).insert({ userId: ann.userId, personId: ben.personId })

    expect(await reasonOf(comment(ben, post, 'Hello'))).toBe('blocked_by_author')
    expect(await reasonOf(comment(ben, elsewhere, 'Hello'))).toBe('done')
    await Block.query(pod.pod.db).delete()
  })
})
