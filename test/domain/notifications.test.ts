import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { newGuid } from '../../src/domain/new-guid.js'
import {
  listNotifications,
  markAllNotificationsRead,
  markNotificationRead,
  type NotificationCauses,
  notifyAbout,
  setNotificationRead,
} from '../../src/domain/notifications/notifications.js'
import { Comment } from '../../src/persistence/models/comment.js'
import { Like } from '../../src/persistence/models/like.js'
import { Notification } from '../../src/persistence/models/notification.js'
import { Participation } from '../../src/persistence/models/participation.js'
import type { Post } from '../../src/persistence/models/post.js'
import { User } from '../../src/persistence/models/user.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import { addPost, showPost } from '../support/databases/rows.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const TIME = new Date('2026-03-01T10:00:00.000Z')
const minutes = (count: number) => new Date(TIME.getTime() + count * 60_000)

describe('notifications', () => {
  let test: TestPod
  let db: Knex
  let alice: Viewer
  let bob: Viewer
  let carol: Viewer
  let dan: Viewer

  beforeAll(async () => {
    test = await buildPod()
    db = test.pod.db
    const people = await test.people('alice', 'bob', 'carol', 'dan')
    alice = await viewerOf(test.pod, people.alice)
    bob = await viewerOf(test.pod, people.bob)
    carol = await viewerOf(test.pod, people.carol)
    dan = await viewerOf(test.pod, people.dan)
  })
  afterAll(() => test.close())

  const causeNotifications = (causes: NotificationCauses, now = TIME) =>
    db.transaction((transaction) => notifyAbout(transaction, causes, now))
  const post = (author: Viewer, fields: Partial<Post> = {}) => addPost(test.pod, { id: author.personId }, fields)
  const mention = (target: { postId: number } | { commentId: number }, ...people: Viewer[]) =>
    db('mentions').insert(
      people.map(({ personId }) => ({ personId, createdAt: 'postId' in target ? TIME : null, ...target })),
    )
  const listen = (under: Post, ...people: Viewer[]) =>
    db.transaction((transaction) =>
      Participation.subscribe(
        transaction,
        under.id,
        people.map(({ personId }) => personId),
      ),
    )

  async function comment(author: Pick<Viewer, 'personId'>, under: Post, ...mentioned: Viewer[]): Promise<Comment> {
    const row = { guid: newGuid(), postId: under.id, authorId: author.personId, text: 'Well said' }
    const written = await Comment.query(db).insert(row).returning('*')
    if (mentioned.length > 0) await mention({ commentId: written.id }, ...mentioned)
    return written
  }

  async function comments(author: Pick<Viewer, 'personId'>, under: Post, ...mentioned: Viewer[]): Promise<void> {
    const { id } = await comment(author, under, ...mentioned)
    await causeNotifications({ comments: [id] })
  }

  async function like(
    author: Viewer,
    target: { postId: number } | { commentId: number },
    positive = true,
  ): Promise<number> {
    const { id } = await Like.query(db)
      .insert({ guid: newGuid(), authorId: author.personId, positive, ...target })
      .returning('id')
    return id
  }

  /** The notifications of a user about one post, the newest first. */
  async function notificationsAbout(viewer: Viewer, about: Post): Promise<readonly (readonly [string, ...string[]])[]> {
    const { items: notifications } = await listNotifications(test.pod, viewer, { limit: 100 })
    return notifications
      .filter(({ target }) => target?.guid === about.guid)
      .map(({ type, actors }) => [type, ...actors.map(({ address }) => address.replace('@pod.example', ''))])
  }

  describe('about comments', () => {
    it('notify the author of the post, and collect later commenters', async () => {
      const mine = await post(alice)

      await comments(bob, mine)
      const [first] = (await listNotifications(test.pod, alice, { limit: 1 })).items
      await causeNotifications({ comments: [(await comment(carol, mine)).id] }, minutes(5))
      await comments(bob, mine)

      expect(await notificationsAbout(alice, mine)).toEqual([['commented_on_post', 'bob', 'carol']])
      const [merged] = (await listNotifications(test.pod, alice, { limit: 1 })).items
      expect(merged).toMatchObject({ guid: first?.guid, read: false, createdAt: TIME, updatedAt: minutes(5) })
      expect(merged?.target?.author.address).toBe('alice@pod.example')
    })

    it('start a new notification after the last was read', async () => {
      const mine = await post(alice)
      await comments(bob, mine)
      await markAllNotificationsRead(test.pod, alice)

      await comments(carol, mine)

      expect(await notificationsAbout(alice, mine)).toEqual([
        ['commented_on_post', 'carol'],
        ['commented_on_post', 'bob'],
      ])
    })

    it('notify all participants except the author of the post and the commenter', async () => {
      const mine = await post(alice)
      await listen(mine, alice, bob, carol)

      await comments(carol, mine)

      expect(await notificationsAbout(bob, mine)).toEqual([['also_commented', 'carol']])
      expect(await notificationsAbout(alice, mine)).toEqual([['commented_on_post', 'carol']])
      expect(await notificationsAbout(carol, mine)).toEqual([])
    })

    it('do not notify people of their own comments', async () => {
      const mine = await post(alice)
      await listen(mine, alice)

      await comments(alice, mine, alice)

      expect(await notificationsAbout(alice, mine)).toEqual([])
    })

    it('notify of comments by unknown people on a remote post', async () => {
      const quin = await addRemotePerson(test.pod, 'quin@q.example')
      const theirs = await addPost(test.pod, quin)
      await listen(theirs, bob)

      await comments({ personId: quin.id }, theirs)

      expect(await notificationsAbout(bob, theirs)).toEqual([['also_commented', 'quin@q.example']])
    })

    it('leave out people who hide the post, except its author', async () => {
      const mine = await post(alice)
      await listen(mine, bob)
      await db('hiddenPosts').insert([bob, alice].map(({ userId }) => ({ userId, postId: mine.id })))

      await comments(carol, mine)

      expect(await notificationsAbout(bob, mine)).toEqual([])
      expect(await notificationsAbout(alice, mine)).toEqual([['commented_on_post', 'carol']])
    })
  })

  describe('about mentions', () => {
    it('replace other notifications about the same comment', async () => {
      const mine = await post(alice)
      await listen(mine, bob)

      await comments(carol, mine, alice, bob, dan)

      for (const viewer of [alice, bob, dan]) {
        expect(await notificationsAbout(viewer, mine)).toEqual([['mentioned_in_comment', 'carol']])
      }
    })

    it('do not change notifications about other comments of the batch', async () => {
      const mine = await post(alice)
      const [one, other] = [await comment(bob, mine, alice), await comment(carol, mine)]

      await causeNotifications({ comments: [one.id, other.id] })

      expect((await notificationsAbout(alice, mine)).toSorted()).toEqual([
        ['commented_on_post', 'carol'],
        ['mentioned_in_comment', 'bob'],
      ])
    })

    it('are separate notifications, created once', async () => {
      const mine = await post(alice)
      await comments(bob, mine, dan)
      const { id } = await comment(bob, mine, dan)
      await causeNotifications({ comments: [id] })
      await markAllNotificationsRead(test.pod, dan)

      await causeNotifications({ comments: [id] })

      expect(await notificationsAbout(dan, mine)).toEqual([
        ['mentioned_in_comment', 'bob'],
        ['mentioned_in_comment', 'bob'],
      ])
      expect(await Notification.query(db).where({ userId: dan.userId, read: false, postId: mine.id })).toEqual([])
    })

    it('on a private post are created for people who have interacted with it', async () => {
      const mine = await post(alice, { public: false })
      await comments(carol, mine)
      await like(dan, { postId: mine.id })
      await db('notifications').where({ postId: mine.id }).delete()
      const { eve } = await test.people('eve')
      const uninvolved = await viewerOf(test.pod, eve)

      await comments(bob, mine, alice, carol, dan, uninvolved)

      for (const viewer of [alice, carol, dan]) {
        expect(await notificationsAbout(viewer, mine)).toEqual([['mentioned_in_comment', 'bob']])
      }
      expect(await notificationsAbout(uninvolved, mine)).toEqual([])
    })

    it('leave the notification about the comment when the mention does not count on a private post', async () => {
      const mine = await post(alice, { public: false })
      await listen(mine, dan)

      await comments(bob, mine, dan)

      expect(await notificationsAbout(dan, mine)).toEqual([['also_commented', 'bob']])
    })

    it('in posts are created once for each person, and not for the author', async () => {
      const theirs = await post(bob)
      await mention({ postId: theirs.id }, alice, bob)

      await causeNotifications({ posts: [theirs.id] })
      await causeNotifications({ posts: [theirs.id] }, minutes(1))

      expect(await notificationsAbout(alice, theirs)).toEqual([['mentioned', 'bob']])
      expect(await notificationsAbout(bob, theirs)).toEqual([])
      expect(await Notification.query(db).findOne({ postId: theirs.id })).toMatchObject({ updatedAt: TIME })
    })

    it('in private posts are created for all recipients, later ones too', async () => {
      const theirs = await post(bob, { public: false })
      await mention({ postId: theirs.id }, alice, carol, dan)
      await showPost(test.pod, theirs, alice)
      await causeNotifications({ posts: [theirs.id], newlyVisiblePosts: [{ userId: alice.userId, postId: theirs.id }] })
      expect(await notificationsAbout(alice, theirs)).toEqual([['mentioned', 'bob']])
      expect(await notificationsAbout(carol, theirs)).toEqual([])

      await showPost(test.pod, theirs, carol)
      await causeNotifications({ newlyVisiblePosts: [{ userId: carol.userId, postId: theirs.id }] })

      expect(await notificationsAbout(carol, theirs)).toEqual([['mentioned', 'bob']])
      expect(await notificationsAbout(dan, theirs)).toEqual([])
      expect(await notificationsAbout(alice, theirs)).toHaveLength(1)
    })
  })

  it('are created for likes, not for dislikes', async () => {
    const mine = await post(alice)

    await causeNotifications({
      likes: [await like(bob, { postId: mine.id }), await like(carol, { postId: mine.id }, false)],
    })
    await causeNotifications({ likes: [await like(alice, { postId: mine.id }), await like(dan, { postId: mine.id })] })

    expect(await notificationsAbout(alice, mine)).toEqual([['liked', 'bob', 'dan']])
  })

  it('are separate for each liked comment, with the post as target', async () => {
    const theirs = await post(bob)
    const [one, other] = [await comment(alice, theirs), await comment(alice, theirs)]

    await causeNotifications({
      likes: [
        await like(bob, { commentId: one.id }),
        await like(carol, { commentId: one.id }),
        await like(carol, { commentId: other.id }),
      ],
    })

    expect((await notificationsAbout(alice, theirs)).toSorted()).toEqual([
      ['liked_comment', 'bob', 'carol'],
      ['liked_comment', 'carol'],
    ])
    expect(await notificationsAbout(bob, theirs)).toEqual([])
  })

  it('notify the author of a post of its reshares', async () => {
    const mine = await post(alice)
    const [one, other] = [
      await post(bob, { type: 'Reshare', text: '', rootId: mine.id }),
      await post(carol, { type: 'Reshare', text: '', rootId: mine.id }),
    ]

    await causeNotifications({ reshares: [other.id, one.id] })

    expect(await notificationsAbout(alice, mine)).toEqual([['reshared', 'carol', 'bob']])
  })

  it('are created for new sharing, without a target', async () => {
    await causeNotifications({ sharing: [{ userId: dan.userId, personId: carol.personId }] })

    const { items: notifications } = await listNotifications(test.pod, dan, { type: 'started_sharing', limit: 5 })
    expect(notifications).toMatchObject([{ target: undefined, actors: [{ address: 'carol@pod.example' }] }])
  })

  describe('are not made', () => {
    it('actions of a blocked person cause no notification', async () => {
      const mine = await post(alice)
      await db('blocks').insert({ userId: alice.userId, personId: dan.personId })
      const { id } = await post(dan, { type: 'Reshare', text: '', rootId: mine.id })

      await causeNotifications({
        comments: [(await comment(dan, mine)).id, (await comment(dan, mine, alice)).id, (await comment(bob, mine)).id],
        likes: [await like(dan, { postId: mine.id })],
        reshares: [id],
        sharing: [{ userId: alice.userId, personId: dan.personId }],
      })
      await db('blocks').delete()

      expect(await notificationsAbout(alice, mine)).toEqual([['commented_on_post', 'bob']])
      const { items: notifications } = await listNotifications(test.pod, alice, { type: 'started_sharing', limit: 5 })
      expect(notifications).toEqual([])
    })

    it('actions on a muted post cause no notification', async () => {
      const mine = await post(alice)
      const said = await comment(alice, mine)
      await db('mutedPosts').insert({ userId: alice.userId, postId: mine.id })
      const { id } = await post(bob, { type: 'Reshare', text: '', rootId: mine.id })

      await causeNotifications({
        comments: [(await comment(bob, mine)).id, (await comment(bob, mine, alice)).id],
        likes: [await like(bob, { postId: mine.id }), await like(bob, { commentId: said.id })],
        reshares: [id],
      })

      expect(await notificationsAbout(alice, mine)).toEqual([])
    })

    it('a closed account gets no notification', async () => {
      const { fay } = await test.people('fay')
      const closed = await viewerOf(test.pod, fay)
      const theirs = await post(closed)
      await User.query(db).findById(closed.userId).patch({ closedAt: TIME })

      await comments(bob, theirs)

      expect(await db('notifications').where({ userId: closed.userId })).toEqual([])
    })
  })

  it('are written with one statement, for one cause or hundreds', async () => {
    const mine = await post(alice)
    await listen(mine, bob, carol, dan)
    const [one, ...more] = await Promise.all(Array.from({ length: 200 }, () => comment(bob, mine, dan)))
    const none = { comments: [] }
    const transaction = await db.transaction()

    expect(await statementsDuring(() => notifyAbout(transaction, none, TIME))).toBe(0)
    expect(await statementsDuring(() => notifyAbout(transaction, { comments: [one?.id ?? 0] }, TIME))).toBe(1)
    const rest = more.map(({ id }) => id)
    expect(await statementsDuring(() => notifyAbout(transaction, { comments: rest }, TIME))).toBe(1)
    await transaction.commit()

    expect(await notificationsAbout(dan, mine)).toHaveLength(100) // as many as are listed
    expect(await Notification.query(db).where({ userId: dan.userId, postId: mine.id }).resultSize()).toBe(200)
    expect(await notificationsAbout(carol, mine)).toEqual([['also_commented', 'bob']])
  })

  it('merge when two transactions notify about the same post at once', async () => {
    const mine = await post(alice)
    await listen(mine, dan)
    const others = [bob, carol]
    const written = await Promise.all(others.map((author) => comment(author, mine)))

    await Promise.all(written.map(({ id }) => causeNotifications({ comments: [id] })))

    const [[type, ...actors] = []] = await notificationsAbout(alice, mine)
    expect([type, actors.toSorted()]).toEqual(['commented_on_post', ['bob', 'carol']])
    expect(await notificationsAbout(dan, mine)).toHaveLength(1)
  })

  describe('of one user', () => {
    let gus: Viewer
    const made: string[] = []

    beforeAll(async () => {
      const { gus: person } = await test.people('gus')
      gus = await viewerOf(test.pod, person)
      for (const [index, author] of [bob, carol, dan].entries()) {
        const mine = await post(gus)
        await causeNotifications({ comments: [(await comment(author, mine)).id] }, minutes(index))
        await causeNotifications({ likes: [await like(author, { postId: mine.id })] }, minutes(index))
      }
      const rows = await Notification.query(db).where({ userId: gus.userId }).orderBy(['createdAt', 'id'])
      made.push(...rows.map(({ guid }) => guid))
    })

    const listTypes = async (filter: Partial<Parameters<typeof listNotifications>[2]>) => {
      const { items: notifications, hasMore } = await listNotifications(test.pod, gus, { limit: 10, ...filter })
      return [notifications.map(({ guid }) => made.indexOf(guid)), hasMore] as const
    }

    it('are listed the newest first, page by page in both directions', async () => {
      expect(await listTypes({})).toEqual([[5, 4, 3, 2, 1, 0], false])
      expect(await listTypes({ limit: 4 })).toEqual([[5, 4, 3, 2], true])
      expect(await listTypes({ limit: 6 })).toEqual([[5, 4, 3, 2, 1, 0], false])

      const { items: notifications } = await listNotifications(test.pod, gus, { limit: 3 })
      const [, , third] = notifications
      const key = { time: third?.createdAt ?? TIME, id: third?.id ?? 0 }
      expect(await listTypes({ before: key, limit: 2 })).toEqual([[2, 1], true])
      expect(await listTypes({ after: key })).toEqual([[4, 5], false])
      expect(await listTypes({ before: { time: minutes(1) } })).toEqual([[1, 0], false])
      expect(await listTypes({ after: { time: minutes(1) } })).toEqual([[4, 5], false])
      expect(await listTypes({ before: { time: minutes(1) }, after: { time: minutes(1) } })).toEqual([[1, 0], false])
    })

    it('are filtered by type, unread state and time of the last change', async () => {
      const [first] = made
      expect(await listTypes({ type: 'liked' })).toEqual([[5, 3, 1], false])
      await setNotificationRead(test.pod, gus, first ?? '', { read: true })
      expect(await listTypes({ onlyUnread: true, type: 'commented_on_post' })).toEqual([[4, 2], false])
      expect(await listTypes({ onlyAfter: minutes(1) })).toEqual([[5, 4], false])
      await db('notifications')
        .where({ guid: made[1] })
        .update({ updatedAt: minutes(9) })
      expect(await listTypes({ onlyAfter: minutes(1) })).toEqual([[5, 4, 1], false])
    })

    it('are read when opened, and unread again when marked, without being any newer', async () => {
      const guid = made[5] ?? ''

      expect(await markNotificationRead(test.pod, gus, guid)).toMatchObject({ guid, read: true, updatedAt: minutes(2) })
      expect(await listTypes({ onlyUnread: true, onlyAfter: minutes(1) })).toEqual([[4, 1], false])
      expect(await setNotificationRead(test.pod, gus, guid, { read: false })).toMatchObject({
        read: false,
        updatedAt: minutes(2),
      })
    })

    it('are visible to their user only', async () => {
      const guid = made[4] ?? ''

      expect(await reasonOf(markNotificationRead(test.pod, alice, guid))).toBe('notification_not_found')
      expect(await reasonOf(setNotificationRead(test.pod, alice, guid, { read: true }))).toBe('notification_not_found')
      expect(await reasonOf(markNotificationRead(test.pod, gus, newGuid()))).toBe('notification_not_found')
      expect(await Notification.query(db).findOne({ guid })).toMatchObject({ read: false })
    })

    it('show the first fifty of many actors', async () => {
      const mine = await post(gus)
      const actorsOfLikes: Awaited<ReturnType<typeof addRemotePerson>>[] = []
      for (let index = 0; index < 60; index += 1) {
        actorsOfLikes.push(await addRemotePerson(test.pod, `fan${String(index).padStart(2, '0')}@q.example`))
      }
      const byName = actorsOfLikes.toSorted((one, other) => (one.address < other.address ? -1 : 1))
      const likes: number[] = []
      for (const { id: personId } of byName) likes.push(await like({ ...bob, personId }, { postId: mine.id }))

      await causeNotifications({ likes }, minutes(10))

      const [[type, ...actors] = []] = await notificationsAbout(gus, mine)
      expect(type).toBe('liked')
      expect(actors).toEqual(byName.slice(0, 50).map(({ address }) => address))
    })
  })

  it('marked unread beside a newer one are superseded by it', async () => {
    const mine = await post(alice)
    await comments(bob, mine)
    const [old] = (await listNotifications(test.pod, alice, { limit: 1 })).items
    await markNotificationRead(test.pod, alice, old?.guid ?? '')
    await comments(carol, mine)

    expect(await setNotificationRead(test.pod, alice, old?.guid ?? '', { read: false })).toMatchObject({ read: false })
    await comments(dan, mine)

    expect(await notificationsAbout(alice, mine)).toEqual([
      ['commented_on_post', 'carol', 'dan'],
      ['commented_on_post', 'bob'],
    ])
  })

  it('marked unread alone are merged into again', async () => {
    const mine = await post(alice)
    await comments(bob, mine)
    const [old] = (await listNotifications(test.pod, alice, { limit: 1 })).items
    await markNotificationRead(test.pod, alice, old?.guid ?? '')

    await setNotificationRead(test.pod, alice, old?.guid ?? '', { read: false })
    await comments(dan, mine)

    expect(await notificationsAbout(alice, mine)).toEqual([['commented_on_post', 'bob', 'dan']])
  })

  it('all notifications of one user are marked read together, and no others', async () => {
    const [mine, theirs] = [await post(carol), await post(bob)]
    await comments(bob, mine)
    await comments(carol, theirs)

    expect(await markAllNotificationsRead(test.pod, carol)).toBeGreaterThan(0)

    const unread = (viewer: Viewer) => listNotifications(test.pod, viewer, { onlyUnread: true, limit: 1 })
    expect((await unread(carol)).items).toEqual([])
    expect((await unread(bob)).items).toHaveLength(1)
  })

  it('are deleted with their post', async () => {
    const mine = await post(alice)
    await comments(bob, mine)
    const rows = await db('notifications').where({ postId: mine.id }).pluck('id')

    await db('posts').where({ id: mine.id }).delete()

    expect(await db('notificationActors').whereIn('notificationId', rows)).toEqual([])
  })
})
