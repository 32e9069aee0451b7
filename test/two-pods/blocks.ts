import { beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { deletePost } from '../../src/domain/posts/deletions.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import {
  type CompletePod,
  type CompletePods,
  type CompletePodUser,
  untilQuiet,
} from '../support/processes/complete-pod.js'
import { discoverEachOther, firstAspectOf, postAt, shareWith } from '../support/processes/complete-pod-users.js'

const because = ['--reason', 'For a test']

/** Two people on two pods follow each other. The operator of one pod blocks the other pod, then the person. */
export function describeBlocks(startedPods: () => CompletePods): void {
  describe('blocks between two pods', { timeout: 180_000 }, () => {
    let near: CompletePod
    let far: CompletePod
    let nora: CompletePodUser
    let finn: CompletePodUser

    beforeAll(async () => {
      ;[near, far] = startedPods()
      ;[nora, finn] = await Promise.all([near.addUser('nora'), far.addUser('finn')])
      await discoverEachOther(nora, finn)
      await shareWith(nora, finn)
      await shareWith(finn, nora)
      await quiet()
    }, 120_000)

    const quiet = () => untilQuiet(near, far)

    /** Publishes a post by nora, and returns whether the other pod has it. */
    async function publish(text: string, isPublic = true) {
      const audience = isPublic ? {} : { aspectIds: [await firstAspectOf(nora)] }
      const { guid } = await publishPost(near.open, nora, { text, public: isPublic, ...audience })
      await quiet()
      return { guid, hasArrived: (await postAt(far, guid)) !== undefined }
    }

    const commentsAt = async (pod: CompletePod, guid: string) => (await postAt(pod, guid))?.comments.length

    it('a comment from a blocked pod is retracted there, as are deleted posts, and nothing else arrives', async () => {
      const before = await publish('Before the block')
      expect(before.hasArrived).toBe(true)

      const refused = await near.command('pods', 'set', far.host, 'blocked', ...because)
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('--yes')])
      expect((await publish('Not blocked yet')).hasArrived).toBe(true)
      await near.json('pods', 'set', far.host, 'blocked', ...because, '--yes')

      await createComment(far.open, finn, { postGuid: before.guid, text: 'Can you read this?' })
      expect(await commentsAt(far, before.guid)).toBe(1)
      await quiet()
      expect([await commentsAt(near, before.guid), await commentsAt(far, before.guid)]).toEqual([0, 0])
      expect((await publish('During the block')).hasArrived).toBe(false)
      await deletePost(near.open, nora, before.guid)
      await quiet()
      expect(await postAt(far, before.guid)).toBeUndefined()

      await near.json('pods', 'unset', far.host, ...because)
      await quiet()
      expect((await publish('After the block', false)).hasArrived).toBe(true)
    })

    it('a blocked person gets no private posts until the undo, and their posts are not stored', async () => {
      await near.json('people', 'block', finn.address, ...because, '--yes')
      expect((await publish('Without Finn', false)).hasArrived).toBe(false)
      const { guid } = await publishPost(far.open, finn, { text: 'Can you read this?', public: true })
      await quiet()
      expect(await postAt(near, guid)).toBeUndefined()

      await near.json('people', 'undo', finn.address, ...because)
      await quiet()
      expect((await publish('With Finn', false)).hasArrived).toBe(true)
    })

    it('posts for a paused pod wait, messages from it arrive, and all posts arrive when it is resumed', async () => {
      await near.json('pods', 'pause', far.host, ...because)
      const texts = ['One', 'Two', 'Three']
      for (const text of texts) await publishPost(near.open, nora, { text, public: true })
      const { guid } = await publishPost(far.open, finn, { text: 'Still here', public: true })
      await expect.poll(async () => (await postAt(near, guid)) !== undefined, { timeout: 30_000 }).toBe(true)
      expect(await far.open.db('posts').whereIn('text', texts)).toEqual([])
      expect(await near.json('pods', 'show', far.host)).toMatchObject({ state: 'paused', failures: 0 })

      await near.json('pods', 'resume', far.host, ...because)
      await quiet()
      // The receiving pod may store them in another order.
      expect((await far.open.db('posts').pluck('text')).filter((text) => texts.includes(text)).toSorted()).toEqual(
        texts.toSorted(),
      )
    })
  })
}
