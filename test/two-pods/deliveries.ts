import { beforeAll, describe, expect, it, vi } from 'vitest'
import { closeOwnAccount } from '../../src/domain/accounts/closing/own-closing.js'
import {
  createMessage,
  listConversationMessages,
  listConversations,
  startConversation,
} from '../../src/domain/conversations/conversations.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createLike } from '../../src/domain/interactions/likes.js'
import { voteInPoll } from '../../src/domain/interactions/votes.js'
import { blockForUser } from '../../src/domain/people/blocks.js'
import { changeProfile } from '../../src/domain/people/profiles.js'
import { deleteComment, deleteLike, deletePost } from '../../src/domain/posts/deletions.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import { closeAccountsJob } from '../../src/jobs/definitions.js'
import type { Comment } from '../../src/persistence/models/comment.js'
import { Participation } from '../../src/persistence/models/participation.js'
import { Post } from '../../src/persistence/models/post.js'
import {
  type CompletePod,
  type CompletePods,
  type CompletePodUser,
  untilQuiet,
} from '../support/processes/complete-pod.js'
import {
  contactOf,
  discoverEachOther,
  firstAspectOf,
  personAt,
  pollOf,
  postAt,
  shareWith,
  takeNotifications,
} from '../support/processes/complete-pod-users.js'

/** Two pods as their operators would run them. Each test finds them as the one before has left them. */
export function describeDeliveries(startedPods: () => CompletePods): void {
  describe('deliveries between two pods', { timeout: 180_000 }, () => {
    let left: CompletePod
    let right: CompletePod
    let alice: CompletePodUser
    let bob: CompletePodUser
    let post: Post
    let privatePost: Post
    let reshare: Post
    let comment: Comment

    beforeAll(async () => {
      ;[left, right] = startedPods()
      ;[alice, bob] = await Promise.all([left.addUser('alice'), right.addUser('bob')])
      await discoverEachOther(alice, bob)
    }, 120_000)

    const quiet = () => untilQuiet(left, right)
    const news = async () => [await takeNotifications(alice), await takeNotifications(bob)]

    /** Both have it, and see the same. */
    async function expectSame({ guid }: Pick<Post, 'guid'>) {
      const [here, there] = [await postAt(left, guid), await postAt(right, guid)]
      expect(there).toEqual(here)
      expect(here).toBeDefined()
      return here
    }

    it('exchange contacts and profiles', async () => {
      await changeProfile(left.open, alice, { name: 'Alice in the left pod', bio: 'Likes trees' })
      await shareWith(alice, bob)
      await quiet()

      expect(await contactOf(alice, bob)).toEqual({ sharing: false, receiving: true })
      expect(await contactOf(bob, alice)).toEqual({ sharing: true, receiving: false })
      expect(await news()).toEqual([[], [['started_sharing', alice.address]]])
      expect(await personAt(right, alice)).toMatchObject({
        name: 'Alice in the left pod',
        profile: { bio: 'Likes trees' },
      })

      await shareWith(bob, alice)
      await quiet()

      for (const [one, other] of [
        [alice, bob],
        [bob, alice],
      ] as const) {
        expect(await contactOf(one, other)).toEqual({ sharing: true, receiving: true })
      }
      expect(await news()).toEqual([[['started_sharing', bob.address]], []])
    })

    it('deliver a public post to contacts, with photos, poll and location', async () => {
      post = await publishPost(left.open, alice, {
        text: `Which tree do you like, @{Bob; ${bob.address}}? #trees`,
        public: true,
        poll: { question: 'Which one?', answers: ['Oak', 'Lime'] },
        location: { address: 'A park', lat: '52.51', lng: '13.36' },
      })
      await quiet()

      expect(await expectSame(post)).toMatchObject({
        author: alice.address,
        poll: ['Lime: 0', 'Oak: 0'],
        location: 'A park',
        tags: ['trees'],
        mentioned: [bob.address],
      })
      expect(await news()).toEqual([[], [['mentioned', alice.address]]])
    })

    it('notify the author of remote comments, and the commenter of further ones', async () => {
      comment = await createComment(right.open, bob, { postGuid: post.guid, text: 'The lime, of course' })
      await quiet()

      expect(await expectSame(post)).toMatchObject({
        counts: [1, 0, 0],
        comments: [{ guid: comment.guid, text: 'The lime, of course', author: bob.address }],
      })
      expect(await news()).toEqual([[['commented_on_post', bob.address]], []])
      const { id } = await Post.query(left.open.db).findById(post.id).throwIfNotFound()
      const participations = Participation.query(left.open.db).where({ postId: id }).orderBy('id')
      // The pod has subscribed to the post when it arrived, and bob with his comment.
      expect(await participations.withGraphFetched('author')).toMatchObject([
        { author: { address: expect.stringMatching(/^pod-account@/) } },
        { author: { address: bob.address } },
      ])

      await createComment(left.open, alice, { postGuid: post.guid, text: 'Why not the oak?' })
      await quiet()

      expect(await expectSame(post)).toMatchObject({ counts: [2, 0, 0] })
      expect(await news()).toEqual([[], [['also_commented', alice.address]]])
    })

    it('notify each other of mentions in comments', async () => {
      await createComment(left.open, alice, { postGuid: post.guid, text: `Tell me, @{${bob.address}}` })
      await quiet()

      await expectSame(post)
      expect(await news()).toEqual([[], [['mentioned_in_comment', alice.address]]])
    })

    it('notify each other of likes of posts and comments', async () => {
      await createLike(right.open, bob, { postGuid: post.guid })
      await createLike(left.open, alice, { postGuid: post.guid, commentGuid: comment.guid })
      await quiet()

      expect(await expectSame(post)).toMatchObject({
        counts: [3, 1, 0],
        likes: [bob.address],
        comments: expect.arrayContaining([expect.objectContaining({ guid: comment.guid, likes: [alice.address] })]),
      })
      expect(await news()).toEqual([[['liked', bob.address]], [['liked_comment', alice.address]]])
    })

    it('count votes from both sides', async () => {
      for (const [pod, who, choice] of [
        [right, bob, 'Lime'],
        [left, alice, 'Oak'],
      ] as const) {
        const { answers = [] } = await pollOf(pod, post)
        const answer = answers.find((each) => each.answer === choice)
        await voteInPoll(pod.open, who, { postGuid: post.guid, answerId: answer?.id ?? 0 })
      }
      await quiet()

      expect(await expectSame(post)).toMatchObject({ poll: ['Lime: 1', 'Oak: 1'] })
      expect(await news()).toEqual([[], []])
    })

    it('notify the author of a reshare and of its comments', async () => {
      reshare = await createReshare(right.open, bob, post.guid)
      await quiet()

      expect(await expectSame(reshare)).toMatchObject({ type: 'Reshare', root: post.guid })
      expect(await expectSame(post)).toMatchObject({ counts: [3, 1, 1], reshares: [bob.address] })
      expect(await news()).toEqual([[['reshared', bob.address]], []])

      await createComment(right.open, bob, { postGuid: reshare.guid, text: 'Good question' })
      await quiet()

      expect(await expectSame(reshare)).toMatchObject({ counts: [1, 0, 0] })
      expect(await news()).toEqual([[['also_commented', bob.address]], []])
    })

    it('deliver private posts only to their recipients', async () => {
      privatePost = await publishPost(left.open, alice, {
        text: `Only for you, @{${bob.address}}`,
        public: false,
        aspectIds: [await firstAspectOf(alice)],
      })
      await quiet()

      expect(await expectSame(privatePost)).toMatchObject({ public: false, text: privatePost.text })
      const there = await Post.query(right.open.db).findOne({ guid: privatePost.guid }).throwIfNotFound()
      expect(await right.open.db('postVisibilities').where({ postId: there.id })).toEqual([
        { postId: there.id, userId: bob.userId, authorId: there.authorId, createdAt: there.createdAt },
      ])
      expect(await news()).toEqual([[], [['mentioned', alice.address]]])

      await createComment(right.open, bob, { postGuid: privatePost.guid, text: 'Thank you' })
      // Two things of one moment may arrive in either order.
      await quiet()
      await createLike(right.open, bob, { postGuid: privatePost.guid })
      await quiet()

      expect(await expectSame(privatePost)).toMatchObject({ counts: [1, 1, 0], likes: [bob.address] })
      expect(await news()).toEqual([
        [
          ['commented_on_post', bob.address],
          ['liked', bob.address],
        ],
        [],
      ])
    })

    it('deliver a conversation and its replies, and count unread messages', async () => {
      const { guid } = await startConversation(left.open, alice, {
        subject: 'Trees',
        text: 'Shall we meet?',
        recipientGuids: [bob.guid],
      })
      await quiet()

      const unread = async (who: CompletePodUser) => {
        const listed = await listConversations(who.pod.open, who, { limit: 5 })
        return listed.items.map(({ subject, read }) => [subject, read ? 'read' : 'unread'])
      }
      expect([await unread(alice), await unread(bob)]).toEqual([[['Trees', 'read']], [['Trees', 'unread']]])

      await createMessage(right.open, bob, { conversationGuid: guid, text: 'Under the lime' })
      await quiet()

      const texts = async (who: CompletePodUser) => {
        const messages = await listConversationMessages(who.pod.open, who, guid, { offset: 0, limit: 10 })
        return messages.items.map(({ text, author }) => `${author.address}: ${text}`).toSorted() // they fall into one second
      }
      const said = [`${alice.address}: Shall we meet?`, `${bob.address}: Under the lime`]
      expect([await texts(alice), await texts(bob)]).toEqual([said, said])
      expect(await unread(alice)).toEqual([['Trees', 'unread']])
      expect(await news()).toEqual([[], []])
    })

    it('deliver changed profiles to contacts, public or private', async () => {
      await changeProfile(left.open, alice, { name: 'Alice', bio: 'Likes limes', publicDetails: true })
      await changeProfile(right.open, bob, { name: 'Bob', birthday: '1990-02-28', publicDetails: false })
      await quiet()

      expect(await personAt(right, alice)).toMatchObject({ name: 'Alice', profile: { bio: 'Likes limes' } })
      expect(await personAt(left, bob)).toMatchObject({ name: 'Bob', profile: { birthday: '1990-02-28' } })
    })

    it('notify of a birthday by command', async () => {
      expect(await left.json('notify', 'birthdays', '--day', '2026-02-28')).toEqual({ notifications: 1 })
      expect(await news()).toEqual([[['contacts_birthday', bob.address]], []])
    })

    it('retract likes, comments, reshares and posts on both pods', async () => {
      await deleteLike(right.open, bob, { postGuid: post.guid })
      await deleteLike(left.open, alice, { postGuid: post.guid, commentGuid: comment.guid })
      await quiet()
      expect(await expectSame(post)).toMatchObject({ counts: [3, 0, 1], likes: [] })

      await deleteComment(right.open, bob, { postGuid: post.guid, commentGuid: comment.guid })
      await quiet()
      expect(await expectSame(post)).toMatchObject({ counts: [2, 0, 1] })

      const again = await createComment(right.open, bob, { postGuid: post.guid, text: 'Buy cheap watches' })
      await quiet()
      await deleteComment(left.open, alice, { postGuid: post.guid, commentGuid: again.guid })
      await quiet()
      expect(await expectSame(post)).toMatchObject({ counts: [2, 0, 1] })

      await deletePost(right.open, bob, reshare.guid)
      await quiet()
      expect([await postAt(left, reshare.guid), await postAt(right, reshare.guid)]).toEqual([undefined, undefined])
      expect(await expectSame(post)).toMatchObject({ counts: [2, 0, 0], reshares: [] })

      await deletePost(left.open, alice, privatePost.guid)
      await quiet()
      expect([await postAt(left, privatePost.guid), await postAt(right, privatePost.guid)]).toEqual([
        undefined,
        undefined,
      ])
      for (const pod of [left, right]) {
        const { rows } = await pod.open.db.raw(
          `select count(*) from notifications where type not in ('started_sharing', 'contacts_birthday') and post_id is null`,
        )
        expect(rows).toEqual([{ count: 0 }])
      }
      await news()
    })

    it('ignore messages of a blocked person', async () => {
      await blockForUser(left.open, alice, bob.guid)
      await quiet()

      expect(await contactOf(alice, bob)).toEqual({ sharing: true, receiving: false })
      expect(await contactOf(bob, alice)).toEqual({ sharing: false, receiving: true })

      const unwanted = await createComment(right.open, bob, { postGuid: post.guid, text: 'Hello?' })
      await quiet()

      expect((await expectSame(post))?.comments.map(({ guid }) => guid)).not.toContain(unwanted.guid)
      expect(await news()).toEqual([[], []])
    })

    it('delete a person who closes their account when the grace period is over, and not before', async () => {
      const closingBegan = right.open.now()
      await closeOwnAccount(right.open, bob.userId, 'bob')
      await quiet()
      expect(await personAt(left, bob)).toMatchObject({ closedAt: null })

      await right.open.db('users').where({ id: bob.userId }).update({ closeAt: closingBegan })
      await right.open.jobs.add(closeAccountsJob, {})
      await vi.waitFor(async () => expect((await personAt(right, bob))?.closedAt).toBeInstanceOf(Date), 20_000)
      await quiet()

      await expect(right.addUser('bob')).rejects.toThrow('taken')
      const gone = await personAt(left, bob)
      expect(gone).toMatchObject({ name: '', profile: { birthday: null, searchable: false } })
      expect(gone?.closedAt).toBeInstanceOf(Date)
      expect(await contactOf(alice, bob)).toEqual({ sharing: false, receiving: false })
    })

    it('have no dead letters and no waiting messages at the end', async () => {
      for (const pod of [left, right]) {
        expect(await pod.json('dead', 'list')).toEqual([])
        expect(await pod.open.db('waiting')).toEqual([])
        expect(await pod.open.db('deliveries').where({ state: 'dead' })).toEqual([])
      }
    })
  })
}
