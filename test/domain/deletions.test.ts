import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { mutePost } from '../../src/domain/interactions/post-interactions.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { deleteComment, deleteLike, deletePhoto, deletePost } from '../../src/domain/posts/deletions.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import { lockEntityKeys } from '../../src/jobs/waiting/lock-entity-keys.js'
import { Comment } from '../../src/persistence/models/comment.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { Like } from '../../src/persistence/models/like.js'
import { Participation } from '../../src/persistence/models/participation.js'
import { Person, Profile } from '../../src/persistence/models/person.js'
import { Photo } from '../../src/persistence/models/photo.js'
import { Post } from '../../src/persistence/models/post.js'
import { purgeDeletedPosts } from '../../src/persistence/posts/delete-posts.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import { addPost, participationsOf } from '../support/databases/rows.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

/** Two transactions wait for each other: one of them is undone. */
const DEADLOCK = '40P01'

describe('taking back', () => {
  let pod: TestPod
  let ann: Viewer
  let ben: Viewer
  let quin: Person
  let remy: Person
  beforeAll(async () => {
    pod = await buildPod()
    const people = await pod.people('ann', 'ben')
    ann = await viewerOf(pod.pod, people.ann)
    ben = await viewerOf(pod.pod, people.ben)
    quin = await addRemotePerson(pod.pod, 'quin@q.example')
    remy = await addRemotePerson(pod.pod, 'remy@r.example')
    await Contact.query(pod.pod.db).insert({ userId: ann.userId, personId: remy.id, sharing: true })
  })
  afterAll(() => pod.close())
  beforeEach(() => pod.pod.db.raw('truncate posts, photos, outbound_messages, tombstones, outbox cascade'))

  /** As after its dispatch. */
  async function dispatchRecord<Record>(record: Promise<Record>): Promise<Record> {
    const written = await record
    await pod.pod.db('outbox').where({ name: 'dispatch' }).delete()
    return written
  }
  const publish = (text = 'Good morning') => dispatchRecord(publishPost(pod.pod, ann, { text, public: true }))
  const comment = (viewer: Viewer, { guid }: Post, text = 'Hello') =>
    dispatchRecord(createComment(pod.pod, viewer, { postGuid: guid, text }))
  const read = ({ id }: Post) => Post.query(pod.pod.db).findById(id)
  const rowsOf = async (table: string) => Number((await pod.pod.db(table).count())[0]?.['count'])

  /** What is on its way: who signs it, what it says, and to whom it goes. */
  async function outgoingMessages(): Promise<readonly object[]> {
    const { rows } = await pod.pod.db.raw(`
      select
        senders.address as sender, messages.record, messages.verb, messages.entity,
        array_agg(coalesce(people.address, pods.host) order by 1) as readers
      from outbound_messages as messages
      join people as senders on senders.id = messages.sender_id
      join deliveries on deliveries.message_id = messages.id
      join pods on pods.id = deliveries.pod_id
      left join people on people.id = deliveries.person_id
      group by messages.id, senders.address
      order by messages.id`)
    return rows.map((row: { entity: string }) => ({ ...row, entity: elementsOf(row.entity) }))
  }

  const elementsOf = (xml: string) =>
    Object.fromEntries([...xml.matchAll(/<(\w+)>([^<]*)<\/\1>/g)].map(([, name, text]) => [name, text]))

  async function likeBy(person: { readonly personId: number }, target: Post | Comment): Promise<Like> {
    const authorId = person.personId
    const isPost = target instanceof Post
    const like = await Like.query(pod.pod.db)
      .insert({ guid: newGuid(), authorId, ...(isPost ? { postId: target.id } : { commentId: target.id }) })
      .returning('*')
    await pod.pod
      .db(isPost ? 'posts' : 'comments')
      .where({ id: target.id })
      .increment('likesCount', 1)
    const postId = isPost ? target.id : target.postId
    const post = await Post.query(pod.pod.db).findById(postId).throwIfNotFound()
    if (post.authorId !== authorId) {
      await pod.pod.db.transaction((transaction) => Participation.subscribe(transaction, postId, [authorId]))
    }
    return like
  }

  async function commentFrom(person: Person, post: Post): Promise<Comment> {
    await pod.pod.db('posts').where({ id: post.id }).increment('commentsCount', 1)
    return Comment.query(pod.pod.db)
      .insert({ guid: newGuid(), authorId: person.id, postId: post.id, text: 'From afar' })
      .returning('*')
  }

  async function photoOf(person: { readonly personId: number }, fields: Partial<Photo> = {}): Promise<Photo> {
    const name = `${newGuid()}.jpg`
    return Photo.query(pod.pod.db)
      .insert({ guid: newGuid(), authorId: person.personId, name, ...fields })
      .returning('*')
  }

  async function waitingForLocks(): Promise<number> {
    const { rowCount } = await pod.pod.db.raw(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rowCount
  }

  /** A creation message that has not been delivered yet. */
  async function undelivered(record: string, guid: string): Promise<void> {
    const [message] = await pod.pod
      .db('outboundMessages')
      .insert({ record, guid, verb: 'create', senderId: ann.personId, public: true, entity: '<x/>' })
      .returning('id')
    await pod.pod.db('deliveries').insert({ messageId: message.id, podId: remy.podId })
  }

  describe('a post', () => {
    it('takes all that is under it along, and leaves reshares without a root', async () => {
      const post = await publishPost(pod.pod, ann, {
        text: 'Good #morning @{ben@pod.example}',
        public: true,
        photoGuids: [(await photoOf(ann, { pending: true })).guid],
        poll: { question: 'Tea?', answers: ['Yes', 'No'] },
        location: { address: 'Here', lat: '1', lng: '2' },
      })
      const commented = await comment(ben, post, 'Hello @{ann@pod.example}')
      await likeBy(ben, commented)
      await likeBy(ben, post)
      const reshare = await createReshare(pod.pod, ben, post.guid)
      await pod.pod
        .db('notifications')
        .insert({ guid: newGuid(), userId: ann.userId, type: 'commented_on_post', postId: post.id })

      await deletePost(pod.pod, ann, post.guid)

      expect(await Post.query(pod.pod.db).select('id', 'rootId')).toEqual([{ id: reshare.id, rootId: null }])
      const tables = ['comments', 'likes', 'photos', 'polls', 'locations', 'taggings', 'mentions', 'notifications']
      expect(await Promise.all(tables.map(rowsOf))).toEqual(tables.map(() => 0))
      // Ann is still subscribed to the reshare.
      expect(await Participation.query(pod.pod.db)).toMatchObject([{ postId: reshare.id, authorId: ann.personId }])
    })

    it('sends a retraction to exactly the recipients of the post', async () => {
      const post = await publish()
      await addPost(pod.pod, quin, { type: 'Reshare', text: '', rootId: post.id })
      await addRemotePerson(pod.pod, 'sam@s.example')

      await deletePost(pod.pod, ann, post.guid)

      expect(await outgoingMessages()).toEqual([
        {
          sender: 'ann@pod.example',
          record: 'post',
          verb: 'retract',
          entity: { author: 'ann@pod.example', target_guid: post.guid, target_type: 'Post' },
          readers: ['q.example', 'r.example'],
        },
      ])
      expect(await pod.pod.db('tombstones')).toMatchObject([
        { targetType: 'Post', guid: post.guid, deletedById: ann.personId },
      ])
    })

    it('cancels undelivered creations of the post and of its interactions', async () => {
      const [post, other] = [await publish(), await publish()]
      const commented = await comment(ben, post)
      const like = await likeBy(ben, commented)
      await undelivered('post', post.guid)
      await undelivered('comment', commented.guid)
      await undelivered('like', like.guid)
      await undelivered('post', other.guid)

      await deletePost(pod.pod, ann, post.guid)

      expect(await outgoingMessages()).toMatchObject([{ verb: 'create', record: 'post', readers: ['r.example'] }])
      expect(await pod.pod.db('outboundMessages').where({ guid: other.guid })).toHaveLength(1)
    })

    it('that is deleted before its dispatch sends nothing', async () => {
      const post = await publishPost(pod.pod, ann, { text: 'Too early', public: true })

      await deletePost(pod.pod, ann, post.guid)

      expect(await outgoingMessages()).toEqual([])
      expect(await rowsOf('outbound_messages')).toBe(0)
      expect(await rowsOf('tombstones')).toBe(1)
    })

    it.each<[why: string, change: () => Promise<unknown>]>([
      ['it was tried', () => pod.pod.db('deliveries').update({ lastFault: 'timeout' })],
      ['it is being delivered', () => pod.pod.db('pods').update({ drainedBy: randomUUID(), drainedUntil: new Date() })],
      [
        'the pod went away after it',
        () => pod.pod.db('pods').update({ offlineSince: pod.pod.db.raw(`now() + '1 s'`) }),
      ],
    ])('is taken back where it may have arrived: %s', async (_, change) => {
      const post = await publish()
      await undelivered('post', post.guid)
      await change()

      await deletePost(pod.pod, ann, post.guid)

      await pod.pod.db('pods').update({ drainedBy: null, drainedUntil: null, offlineSince: null })
      expect(await outgoingMessages()).toMatchObject([{ verb: 'retract', readers: ['r.example'] }])
    })

    it.each<[what: string, act: (post: Post) => Promise<unknown>]>([
      ['a like that is taken back', ({ guid }) => deleteLike(pod.pod, ben, { postGuid: guid })],
      ['a person who mutes it', ({ guid }) => mutePost(pod.pod, ben, guid)],
    ])('and %s of the same moment never wait for each other', async (_, act) => {
      const faults: unknown[] = []
      const watch = ({ code }: { readonly code?: unknown }) => faults.push(code)
      pod.pod.db.on('query-error', watch)
      const post = await publish()
      const commented = await comment(ben, post)
      await likeBy(ben, post)
      // The deletion has the post, and waits for the first of what is under it.
      const other = await pod.pod.db.transaction()
      await Comment.query(other).findById(commented.id).forKeyShare()
      const deleting = deletePost(pod.pod, ann, post.guid)
      await expect.poll(() => waitingForLocks()).toBe(1)
      const acting = reasonOf(act(post))
      await expect.poll(() => waitingForLocks()).toBe(2)
      await other.commit()
      await Promise.all([deleting, acting])

      pod.pod.db.off('query-error', watch)
      expect(faults).not.toContain(DEADLOCK)
      expect(await read(post)).toBeUndefined()
    })

    it('for a few people is retracted to each of them', async () => {
      const [aspect] = await pod.pod.db('aspects').where({ userId: ann.userId })
      const contact = await Contact.query(pod.pod.db).findOne({ userId: ann.userId, personId: remy.id })
      await contact?.$query(pod.pod.db).patch({ receiving: true })
      await pod.pod.db('aspectMemberships').insert({ aspectId: aspect.id, contactId: contact?.id })
      const post = await dispatchRecord(
        publishPost(pod.pod, ann, { text: 'For you', public: false, aspectIds: [aspect.id] }),
      )

      await deletePost(pod.pod, ann, post.guid)

      expect(await outgoingMessages()).toMatchObject([{ verb: 'retract', readers: ['remy@r.example'] }])
    })

    it('a deleted reshare is no longer counted, and its root no longer subscribed to', async () => {
      const root = await publish()
      const reshare = await createReshare(pod.pod, ben, root.guid)
      await comment(ben, root)

      await deletePost(pod.pod, ben, reshare.guid)

      expect(await read(root)).toMatchObject({ resharesCount: 0, commentsCount: 1 })
      expect(await participationsOf(pod.pod, root)).toEqual([{ authorId: ben.personId, count: 1 }])
    })

    it('can be deleted by its author only, with a token for it', async () => {
      const [post, hidden] = [await publish(), await addPost(pod.pod, { id: ann.personId }, { public: false })]
      const careful = { ...ann, scopes: new Set([...ann.scopes].filter((scope) => scope !== 'private:modify')) }

      expect(await reasonOf(deletePost(pod.pod, ben, post.guid))).toBe('not_author')
      expect(await reasonOf(deletePost(pod.pod, ben, hidden.guid))).toBe('post_not_found')
      expect(await reasonOf(deletePost(pod.pod, careful, hidden.guid))).toBe('insufficient_scope')
      expect(await reasonOf(deletePost(pod.pod, careful, post.guid))).toBe('done')
      expect(await reasonOf(deletePost(pod.pod, ann, post.guid))).toBe('post_not_found')
      expect(await reasonOf(deletePost(pod.pod, ann, hidden.guid))).toBe('done')
    })

    it('with thousands of comments needs one more statement than with a single one, and a later job deletes the comments', async () => {
      const [small, large] = [await publish(), await publish()]
      const underneath = async (post: Post, count: number) => {
        await pod.pod.db.raw(
          `insert into comments (guid, author_id, post_id, text)
           select md5(random()::text), ?, ?, 'Hello' from generate_series(1, ?)`,
          [ben.personId, post.id, count],
        )
        await pod.pod.db.raw(
          `insert into likes (guid, author_id, comment_id) select md5(random()::text), ?, id from comments where post_id = ?`,
          [ann.personId, post.id],
        )
      }
      await underneath(small, 1)
      await underneath(large, 3_000)

      const few = await statementsDuring(() => deletePost(pod.pod, ann, small.guid))
      const many = await statementsDuring(() => deletePost(pod.pod, ann, large.guid))

      expect(many).toBe(few + 1)
      expect(await rowsOf('comments')).toBe(3_000)
      await purgeDeletedPosts(pod.pod.db)
      expect(await rowsOf('comments')).toBe(0)
    })
  })

  describe('a comment', () => {
    it('is not counted any more, nor its likes, and who stays under the post for nothing else leaves it', async () => {
      const post = await publish()
      const [first, second] = [await comment(ben, post), await comment(ben, post)]
      await likeBy(ann, first)
      await likeBy(ben, first)

      await deleteComment(pod.pod, ben, { postGuid: post.guid, commentGuid: first.guid })
      expect(await read(post)).toMatchObject({ commentsCount: 1 })
      expect(await participationsOf(pod.pod, post)).toEqual([{ authorId: ben.personId, count: 1 }])

      await deleteComment(pod.pod, ann, { postGuid: post.guid, commentGuid: second.guid })
      expect(await read(post)).toMatchObject({ commentsCount: 0 })
      expect(await participationsOf(pod.pod, post)).toEqual([])
      expect(await rowsOf('likes')).toBe(0)
    })

    it('of a remote author is also retracted to their pod; their own participation stays', async () => {
      const post = await publish()
      const { guid } = await commentFrom(quin, post)
      await Participation.query(pod.pod.db).insert({ guid: newGuid(), postId: post.id, authorId: quin.id })

      await deleteComment(pod.pod, ann, { postGuid: post.guid, commentGuid: guid })

      expect(await outgoingMessages()).toEqual([
        {
          sender: 'ann@pod.example',
          record: 'comment',
          verb: 'retract',
          entity: { author: 'quin@q.example', target_guid: guid, target_type: 'Comment' },
          readers: ['q.example', 'r.example'],
        },
      ])
      expect(await participationsOf(pod.pod, post)).toEqual([{ authorId: quin.id, count: 1 }])
      expect(await read(post)).toMatchObject({ commentsCount: 0 })
    })

    it('is retracted at the people whom it mentions', async () => {
      const post = await publish()
      const { guid } = await comment(ben, post, 'Look, @{quin@q.example}')

      await deleteComment(pod.pod, ben, { postGuid: post.guid, commentGuid: guid })

      expect(await outgoingMessages()).toMatchObject([
        { sender: 'ben@pod.example', entity: { author: 'ben@pod.example' }, readers: ['q.example', 'r.example'] },
      ])
    })

    it('under the post of another pod is retracted to that pod only', async () => {
      const post = await addPost(pod.pod, quin)
      await Contact.query(pod.pod.db).insert({ userId: ben.userId, personId: remy.id, sharing: true })
      const { guid } = await comment(ben, post)

      await deleteComment(pod.pod, ben, { postGuid: post.guid, commentGuid: guid })

      expect(await outgoingMessages()).toMatchObject([{ sender: 'ben@pod.example', readers: ['q.example'] }])
    })

    it('can be deleted by its author and that of the post, once', async () => {
      const [post, other] = [await publish(), await addPost(pod.pod, quin)]
      const [own, foreign] = [await comment(ann, post), await commentFrom(remy, other)]
      const remove = (viewer: Viewer, under: Post, { guid }: { readonly guid: string }) =>
        reasonOf(deleteComment(pod.pod, viewer, { postGuid: under.guid, commentGuid: guid }))

      expect(await remove(ben, post, own)).toBe('not_author')
      expect(await remove(ann, other, foreign)).toBe('not_author')
      expect(await remove(ann, other, own)).toBe('comment_not_found')
      expect(await remove(ann, post, own)).toBe('done')
      expect(await remove(ann, post, own)).toBe('comment_not_found')
    })

    it('leaves the right count when all of them go at once', async () => {
      const post = await publish()
      const comments = await Promise.all(Array.from({ length: 8 }, () => comment(ben, post)))

      await Promise.all(
        comments.slice(1).map(({ guid }) => deleteComment(pod.pod, ben, { postGuid: post.guid, commentGuid: guid })),
      )

      expect(await read(post)).toMatchObject({ commentsCount: 1 })
      expect(await participationsOf(pod.pod, post)).toEqual([{ authorId: ben.personId, count: 1 }])
    })
  })

  describe('a like', () => {
    it('is no longer counted and retracted at all recipients of the post; notifications about it stay', async () => {
      const post = await publish()
      const like = await likeBy(ben, post)
      const notification = { guid: newGuid(), userId: ann.userId, type: 'liked', postId: post.id }
      await pod.pod.db('notifications').insert(notification)

      await deleteLike(pod.pod, ben, { postGuid: post.guid })

      expect(await read(post)).toMatchObject({ likesCount: 0 })
      expect(await participationsOf(pod.pod, post)).toEqual([])
      expect(await outgoingMessages()).toMatchObject([
        { sender: 'ben@pod.example', entity: { target_guid: like.guid, target_type: 'Like' }, readers: ['r.example'] },
      ])
      expect(await pod.pod.db('notifications')).toHaveLength(1)
    })

    it('of a comment leaves the post unchanged', async () => {
      const post = await addPost(pod.pod, quin)
      const commented = await comment(ben, post)
      await likeBy(ben, post)
      await likeBy(ben, commented)

      await deleteLike(pod.pod, ben, { postGuid: post.guid, commentGuid: commented.guid })

      expect(await read(post)).toMatchObject({ likesCount: 1, commentsCount: 1 })
      expect(await Comment.query(pod.pod.db).findById(commented.id)).toMatchObject({ likesCount: 0 })
      expect(await participationsOf(pod.pod, post)).toEqual([{ authorId: ben.personId, count: 2 }])
      expect(await outgoingMessages()).toMatchObject([{ readers: ['q.example'] }])
    })

    it('that does not exist cannot be deleted', async () => {
      const post = await publish()
      const unknown = newGuid()

      expect(await reasonOf(deleteLike(pod.pod, ben, { postGuid: post.guid }))).toBe('not_liked')
      expect(await reasonOf(deleteLike(pod.pod, ben, { postGuid: unknown }))).toBe('post_not_found')
      expect(await reasonOf(deleteLike(pod.pod, ben, { postGuid: post.guid, commentGuid: unknown }))).toBe(
        'comment_not_found',
      )
    })
  })

  describe('a photo', () => {
    const withPhotos = async (text: string, count: number) => {
      const photos = await Promise.all(Array.from({ length: count }, () => photoOf(ann, { pending: true })))
      const photoGuids = photos.map(({ guid }) => guid)
      return { post: await dispatchRecord(publishPost(pod.pod, ann, { text, public: true, photoGuids })), photoGuids }
    }

    it('leaves a post that has something else to show', async () => {
      const { post, photoGuids } = await withPhotos('', 2)

      await deletePhoto(pod.pod, ann, photoGuids[0] ?? '')

      expect(await read(post)).toBeDefined()
      expect(await outgoingMessages()).toMatchObject([
        { record: 'photo', entity: { target_guid: photoGuids[0], target_type: 'Photo' }, readers: ['r.example'] },
      ])
    })

    it('also deletes a post without other content', async () => {
      const { post, photoGuids } = await withPhotos(' \n ', 1)
      const { post: worded, photoGuids: pictured } = await withPhotos('Look', 1)

      await deletePhoto(pod.pod, ann, photoGuids[0] ?? '')
      await deletePhoto(pod.pod, ann, pictured[0] ?? '')

      expect(await read(post)).toBeUndefined()
      expect(await read(worded)).toBeDefined()
      expect(await outgoingMessages()).toMatchObject([
        { record: 'photo', readers: ['r.example'] },
        { record: 'post', entity: { target_guid: post.guid }, readers: ['r.example'] },
        { record: 'photo', readers: ['r.example'] },
      ])
    })

    it('also deletes a post without other content when two photos are deleted at the same time', async () => {
      const { post, photoGuids } = await withPhotos('', 2)
      const things = photoGuids.map((guid) => `photo:${guid}` as const)
      const locks = await pod.pod.db.transaction()
      await lockEntityKeys(locks, things)
      const deleting = Promise.all(photoGuids.map((guid) => deletePhoto(pod.pod, ann, guid)))
      await expect.poll(() => waitingForLocks()).toBe(2)
      await locks.commit()
      await deleting

      expect(await read(post)).toBeUndefined()
    })

    it('also deletes a post that is published with it at the same time', async () => {
      const { guid } = await photoOf(ann, { pending: true })
      const publishing = await pod.pod.db.transaction()
      const post = await publishPost({ ...pod.pod, db: publishing }, ann, {
        text: '',
        public: true,
        photoGuids: [guid],
      })
      const deleting = deletePhoto(pod.pod, ann, guid)
      await expect.poll(() => waitingForLocks()).toBe(1)
      await publishing.commit()
      await deleting

      expect(await read(post)).toBeUndefined()
    })

    it('is removed from the profile', async () => {
      const [portrait, other] = [await photoOf(ann), await photoOf(ann)]
      const imageUrl = (size: string) => `https://pod.example/uploads/images/${size}${portrait.name}`
      const images = {
        imageUrl: imageUrl('thumb_large_'),
        imageUrlMedium: imageUrl('thumb_medium_'),
        imageUrlSmall: imageUrl('thumb_small_'),
      }
      await Profile.query(pod.pod.db).findById(ann.personId).patch(images)
      await Person.query(pod.pod.db).findById(ann.personId).patch({ avatarUrl: images.imageUrlMedium })

      await deletePhoto(pod.pod, ann, other.guid)
      expect(await Profile.query(pod.pod.db).findById(ann.personId)).toMatchObject(images)

      await deletePhoto(pod.pod, ann, portrait.guid)
      const none = { imageUrl: null, imageUrlMedium: null, imageUrlSmall: null }
      expect(await Profile.query(pod.pod.db).findById(ann.personId)).toMatchObject(none)
      expect(await Person.query(pod.pod.db).findById(ann.personId)).toMatchObject({ avatarUrl: null })
      expect(await pod.pod.db('outbox').where({ name: 'dispatch' })).toMatchObject([
        { data: { record: 'profile', personId: ann.personId } },
      ])
    })

    it('must be one’s own, and a private one requires a token for private posts', async () => {
      const [hidden, shown] = [await photoOf(ann), await photoOf(ann, { public: true })]
      const careful = { ...ann, scopes: new Set([...ann.scopes].filter((scope) => scope !== 'private:modify')) }

      expect(await reasonOf(deletePhoto(pod.pod, ben, shown.guid))).toBe('photo_not_found')
      expect(await reasonOf(deletePhoto(pod.pod, careful, hidden.guid))).toBe('photo_not_found')
      expect(await reasonOf(deletePhoto(pod.pod, careful, shown.guid))).toBe('done')
      expect(await outgoingMessages()).toMatchObject([{ readers: ['r.example'] }])
    })
  })
})
