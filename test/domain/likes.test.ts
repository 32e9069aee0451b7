import { createPublicKey } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createLike } from '../../src/domain/interactions/likes.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { deleteLike } from '../../src/domain/posts/deletions.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { Comment } from '../../src/persistence/models/comment.js'
import { Block } from '../../src/persistence/models/contact.js'
import { Like } from '../../src/persistence/models/like.js'
import { Person } from '../../src/persistence/models/person.js'
import { Post } from '../../src/persistence/models/post.js'
import { verifyRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost } from '../support/databases/rows.js'
import { type DomainPod, openDomainPod } from '../support/pods/domain-pod.js'

describe('liking', () => {
  let domainPod: DomainPod
  let ann: Viewer
  let ben: Viewer
  beforeAll(async () => {
    domainPod = await openDomainPod()
    ann = domainPod.ann
    ben = domainPod.ben
  })
  afterAll(() => domainPod.close())
  afterEach(async () => {
    await domainPod.pod.db('notifications').delete()
    await domainPod.dispatched()
  })

  const publish = () => publishPost(domainPod.pod, ann, { text: 'Good morning', public: true })
  const comment = (viewer: Viewer, post: Post) =>
    createComment(domainPod.pod, viewer, { postGuid: post.guid, text: 'Well said' })
  const like = (viewer: Viewer, post: Pick<Post, 'guid'>, under?: Pick<Comment, 'guid'>) =>
    createLike(domainPod.pod, viewer, { postGuid: post.guid, commentGuid: under?.guid })
  const unlike = (viewer: Viewer, post: Post, under?: Comment) =>
    deleteLike(domainPod.pod, viewer, { postGuid: post.guid, commentGuid: under?.guid })
  const likesOf = async ({ id }: Post) => (await Post.query(domainPod.pod.db).findById(id))?.likesCount

  it('a post is counted, notifies its author, and is sent to other pods', async () => {
    const post = await publish()
    await domainPod.dispatched()

    const { guid } = await like(ben, post)

    expect(await likesOf(post)).toBe(1)
    expect(await domainPod.participationsOf(post)).toMatchObject([{ authorId: ben.personId, count: 1 }])
    expect(await domainPod.notificationsOf(ann)).toEqual([['liked', 'ben@pod.example']])
    expect(await domainPod.dispatched()).toEqual([{ record: 'like', guid }])
  })

  it('a comment is counted, notifies its author, and subscribes to the post', async () => {
    const post = await publish()
    const liked = await comment(ben, post)

    const { id } = await like(domainPod.cem, post, liked)

    expect(await Comment.query(domainPod.pod.db).findById(liked.id)).toMatchObject({ likesCount: 1 })
    expect(await likesOf(post)).toBe(0)
    expect(await Like.query(domainPod.pod.db).findById(id)).toMatchObject({ postId: null, commentId: liked.id })
    expect(await domainPod.participationsOf(post)).toMatchObject([
      { authorId: ben.personId, count: 1 },
      { authorId: domainPod.cem.personId, count: 1 },
    ])
    expect(await domainPod.notificationsOf(ben)).toEqual([['liked_comment', 'cem@pod.example']])
    expect(await domainPod.notificationsOf(ann)).toEqual([['commented_on_post', 'ben@pod.example']])
  })

  it('is signed by its author on another person’s post', async () => {
    const post = await publish()
    const liked = await comment(ann, post)
    const author = await Person.query(domainPod.pod.db).findById(ben.personId).throwIfNotFound()

    for (const under of [undefined, liked]) {
      const { guid, authorSignature, signedElements } = await like(ben, post, under)
      const entity = {
        type: 'like',
        author: author.address,
        guid,
        parent_guid: (under ?? post).guid,
        parent_type: under ? 'Comment' : 'Post',
        positive: true,
        author_signature: authorSignature ?? '',
      } as const
      expect(verifyRelayable(entity, createPublicKey(author.publicKey))).toBe(true)
      expect(verifyRelayable({ ...entity, positive: false }, createPublicKey(author.publicKey))).toBe(false)
      expect(signedElements?.map(([name]) => name)).toEqual([
        'author',
        'guid',
        'parent_guid',
        'parent_type',
        'positive',
      ])
    }
  })

  it('is allowed for own content, without a notification or signature', async () => {
    const post = await publish()

    expect(await like(ann, post)).toMatchObject({ authorSignature: null, signedElements: null })

    expect(await likesOf(post)).toBe(1)
    expect(await domainPod.participationsOf(post)).toEqual([])
    expect(await domainPod.notificationsOf(ann)).toEqual([])
  })

  it('a remote post subscribes to it the first time', async () => {
    const theirs = await addPost(domainPod.pod, domainPod.quin)
    const first = await like(ben, theirs)
    const second = await comment(ben, theirs)

    const [participation] = await domainPod.participationsOf(theirs)
    expect(participation).toMatchObject({ count: 2 })
    expect(await domainPod.dispatched()).toEqual([
      { record: 'participation', guid: participation?.guid },
      { record: 'like', guid: first.guid },
      { record: 'comment', guid: second.guid },
    ])
  })

  it('succeeds once of several simultaneous requests', async () => {
    const post = await publish()

    const outcomes = await Promise.all(Array.from({ length: 5 }, () => reasonOf(like(ben, post))))

    expect(outcomes.toSorted()).toEqual([...Array.from({ length: 4 }, () => 'already_liked'), 'done'])
    expect(await likesOf(post)).toBe(1)
    expect(await domainPod.participationsOf(post)).toMatchObject([{ count: 1 }])
    const liked = await comment(ann, post)
    expect([await reasonOf(like(ben, post, liked)), await reasonOf(like(ben, post, liked))]).toEqual([
      'done',
      'already_liked',
    ])
  })

  it('ends the muting of the post', async () => {
    const post = await publish()
    await domainPod.pod.db('mutedPosts').insert({ userId: ben.userId, postId: post.id })

    await like(ben, post)

    expect(await domainPod.pod.db('mutedPosts').where({ postId: post.id })).toEqual([])
  })

  it('is refused for content that does not exist or is not visible to the viewer', async () => {
    const hidden = await addPost(domainPod.pod, { id: ann.personId }, { public: false })
    const [post, other] = [await publish(), await publish()]
    const elsewhere = await comment(ann, other)

    expect(await reasonOf(like(ben, hidden))).toBe('post_not_found')
    expect(await reasonOf(like(ben, { guid: newGuid() }))).toBe('post_not_found')
    expect(await reasonOf(like(ben, post, elsewhere))).toBe('comment_not_found')
  })

  it('is refused for people whom the author of the post blocks, also on comments of others', async () => {
    const post = await publish()
    const liked = await comment(domainPod.cem, post)
    await Block.query(domainPod.pod.db).insert({ userId: ann.userId, personId: ben.personId })

    expect(await reasonOf(like(ben, post))).toBe('blocked_by_author')
    expect(await reasonOf(like(ben, post, liked))).toBe('blocked_by_author')
    await Block.query(domainPod.pod.db).delete()
    expect(await likesOf(post)).toBe(0)
  })

  it('can be deleted: the counter is lowered, the notification stays', async () => {
    const post = await publish()
    await like(ben, post)

    await unlike(ben, post)

    expect(await likesOf(post)).toBe(0)
    expect(await domainPod.participationsOf(post)).toEqual([])
    expect(await domainPod.notificationsOf(ann)).toEqual([['liked', 'ben@pod.example']])
    expect(await reasonOf(unlike(ben, post))).toBe('not_liked')
    expect(await reasonOf(like(ben, post))).toBe('done')
  })
})
