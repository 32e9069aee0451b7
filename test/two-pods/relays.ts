import { beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createLike } from '../../src/domain/interactions/likes.js'
import { subscribeToPost } from '../../src/domain/interactions/post-interactions.js'
import { voteInPoll } from '../../src/domain/interactions/votes.js'
import { deleteComment, deleteLike, deletePost } from '../../src/domain/posts/deletions.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import type { Comment } from '../../src/persistence/models/comment.js'
import type { Post } from '../../src/persistence/models/post.js'
import {
  type CompletePod,
  type CompletePods,
  type CompletePodUser,
  untilQuiet,
} from '../support/processes/complete-pod.js'
import {
  discoverEachOther,
  firstAspectOf,
  personAt,
  pollOf,
  postAt,
  shareWith,
  takeNotifications,
} from '../support/processes/complete-pod-users.js'

/**
 * Two people on two pods follow a person on a third one, and do not know each other. Each test finds the pods as the one before
 * has left them.
 */
export function describeRelays(startedPods: () => CompletePods): void {
  describe('relays between three pods', { timeout: 180_000 }, () => {
    let pods: readonly [CompletePod, CompletePod, CompletePod]
    let alice: CompletePodUser
    let bob: CompletePodUser
    let carol: CompletePodUser
    let post: Post
    let comment: Comment

    beforeAll(async () => {
      pods = startedPods()
      const [a, b, c] = pods
      ;[alice, bob, carol] = await Promise.all([a.addUser('rita'), b.addUser('ron'), c.addUser('rosa')])
      await discoverEachOther(alice, bob)
      await discoverEachOther(alice, carol)
      await shareWith(bob, alice)
      await shareWith(carol, alice)
      await quiet()
      await news()
    }, 120_000)

    const quiet = () => untilQuiet(...pods)
    const news = async () => [
      await takeNotifications(alice),
      await takeNotifications(bob),
      await takeNotifications(carol),
    ]

    /** All three have it, and see the same. */
    async function expectSame({ guid }: Pick<Post, 'guid'>) {
      const [here, ...elsewhere] = await Promise.all(pods.map((pod) => postAt(pod, guid)))
      expect(elsewhere).toEqual([here, here])
      expect(here).toBeDefined()
      return here
    }

    it('deliver a post to all followers', async () => {
      post = await publishPost(alice.pod.open, alice, {
        text: 'Which tree do you like?',
        public: true,
        poll: { question: 'Which one?', answers: ['Oak', 'Lime'] },
      })
      await quiet()

      await expectSame(post)
    })

    it('relay a comment to a person who does not know its author', async () => {
      expect(await personAt(carol.pod, bob)).toBeUndefined()

      comment = await createComment(bob.pod.open, bob, { postGuid: post.guid, text: 'The lime, of course' })
      await quiet()

      expect(await expectSame(post)).toMatchObject({ counts: [1, 0, 0], comments: [{ author: bob.address }] })
      expect(await personAt(carol.pod, bob)).toMatchObject({ address: bob.address })
      expect(await news()).toEqual([[['commented_on_post', bob.address]], [], []])
    })

    it('notify participants of further comments', async () => {
      await subscribeToPost(carol.pod.open, carol, post.guid)
      await createComment(bob.pod.open, bob, { postGuid: post.guid, text: `Or not, @{${carol.address}}?` })
      await quiet()
      await createComment(carol.pod.open, carol, { postGuid: post.guid, text: 'Rather the oak' })
      await quiet()

      expect(await expectSame(post)).toMatchObject({ counts: [3, 0, 0] })
      expect(await news()).toEqual([
        [['commented_on_post', bob.address, carol.address]],
        [['also_commented', carol.address]],
        [['mentioned_in_comment', bob.address]],
      ])
    })

    it('relay likes and votes', async () => {
      await createLike(carol.pod.open, carol, { postGuid: post.guid })
      await createLike(carol.pod.open, carol, { postGuid: post.guid, commentGuid: comment.guid })
      for (const who of [bob, carol]) {
        const { answers = [] } = await pollOf(who.pod, post)
        const lime = answers.find(({ answer }) => answer === 'Lime')
        await voteInPoll(who.pod.open, who, { postGuid: post.guid, answerId: lime?.id ?? 0 })
      }
      await quiet()

      expect(await expectSame(post)).toMatchObject({
        counts: [3, 1, 0],
        likes: [carol.address],
        poll: ['Lime: 2', 'Oak: 0'],
        comments: expect.arrayContaining([expect.objectContaining({ guid: comment.guid, likes: [carol.address] })]),
      })
      expect(await news()).toEqual([[['liked', carol.address]], [['liked_comment', carol.address]], []])
    })

    it('deliver a reshare to followers, with its root', async () => {
      await discoverEachOther(bob, carol)
      await shareWith(bob, carol)
      const older = await publishPost(alice.pod.open, alice, { text: 'Written for nobody else', public: true })
      await quiet()
      await news()

      const reshare = await createReshare(carol.pod.open, carol, older.guid)
      await quiet()

      expect(await expectSame(reshare)).toMatchObject({ root: older.guid })
      expect(await expectSame(older)).toMatchObject({ counts: [0, 0, 1], reshares: [carol.address] })
      expect(await news()).toEqual([[['reshared', carol.address]], [], []])
    })

    it('relay retractions by the comment author and by the post author', async () => {
      await deleteLike(carol.pod.open, carol, { postGuid: post.guid })
      await deleteComment(bob.pod.open, bob, { postGuid: post.guid, commentGuid: comment.guid })
      await quiet()
      expect(await expectSame(post)).toMatchObject({ counts: [2, 0, 0], likes: [] })

      const unwanted = await createComment(carol.pod.open, carol, { postGuid: post.guid, text: 'Buy cheap watches' })
      await quiet()
      expect(await expectSame(post)).toMatchObject({ counts: [3, 0, 0] })
      await deleteComment(alice.pod.open, alice, { postGuid: post.guid, commentGuid: unwanted.guid })
      await quiet()

      expect(await expectSame(post)).toMatchObject({ counts: [2, 0, 0] })
    })

    it('show private posts and their comments only to their recipients', async () => {
      await shareWith(alice, bob)
      const { guid } = await publishPost(alice.pod.open, alice, {
        text: 'Only for bob',
        public: false,
        aspectIds: [await firstAspectOf(alice)],
      })
      await quiet()
      await createComment(bob.pod.open, bob, { postGuid: guid, text: 'Thank you' })
      await createLike(bob.pod.open, bob, { postGuid: guid })
      await quiet()

      const [here, there, elsewhere] = await Promise.all(pods.map((pod) => postAt(pod, guid)))
      expect(here).toMatchObject({ counts: [1, 1, 0] })
      expect([there, elsewhere]).toEqual([here, undefined])
    })

    it('delete a post when its author deletes it', async () => {
      await deletePost(alice.pod.open, alice, post.guid)
      await quiet()

      expect(await Promise.all(pods.map((pod) => postAt(pod, post.guid)))).toEqual([undefined, undefined, undefined])
    })

    it('have no dead letters and no waiting messages at the end', async () => {
      for (const pod of pods) {
        expect(await pod.json('dead', 'list')).toEqual([])
        expect(await pod.open.db('waiting')).toEqual([])
        expect(await pod.open.db('deliveries').where({ state: 'dead' })).toEqual([])
      }
    })
  })
}
