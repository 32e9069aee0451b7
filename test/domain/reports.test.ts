import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createReport } from '../../src/domain/moderation/reports.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost } from '../support/databases/rows.js'
import { confirmMailbox } from '../support/mail/mail-runs.js'
import { type DomainPod, openDomainPod } from '../support/pods/domain-pod.js'

describe('reporting', () => {
  let domainPod: DomainPod
  beforeAll(async () => {
    domainPod = await openDomainPod()
  })
  afterAll(() => domainPod.close())

  it('shows a post or a comment to the moderators, once for each who reports it', async () => {
    const { pod, ann, ben, cem } = domainPod
    const { id: postId, guid: postGuid } = await publishPost(pod, ann, { text: 'Good morning', public: true })
    const { id: commentId, guid: commentGuid } = await createComment(pod, ben, { postGuid, text: 'Cheap watches' })
    await domainPod.dispatched()

    const outcomes = [
      await reasonOf(createReport(pod, cem, { postGuid, reason: ' It is rude. ' })),
      await reasonOf(createReport(pod, cem, { postGuid, reason: 'Again' })),
      await reasonOf(createReport(pod, cem, { postGuid, commentGuid, reason: 'It is spam.' })),
      await reasonOf(createReport(pod, cem, { postGuid, commentGuid, reason: 'Again' })),
      await reasonOf(createReport(pod, ben, { postGuid, commentGuid, reason: 'My own' })),
    ]

    expect(outcomes).toEqual(['done', 'already_reported', 'done', 'already_reported', 'done'])
    expect(await pod.db('reports').orderBy('id')).toMatchObject([
      { userId: cem.userId, postId, commentId: null, reason: 'It is rude.', reviewedAt: null },
      { userId: cem.userId, postId: null, commentId, reason: 'It is spam.' },
      { userId: ben.userId, postId: null, commentId, reason: 'My own' },
    ])
    expect(await domainPod.dispatched()).toEqual([])
  })

  it('enqueues no mail for moderators without a mail server', async () => {
    const { pod, ann, ben } = domainPod
    await pod.db('users').where({ id: ben.userId }).update({ role: 'moderator' })
    await confirmMailbox(pod, 'ben')
    const { guid: postGuid } = await publishPost(pod, ann, { text: 'Good night', public: true })

    expect(await reasonOf(createReport(pod, ann, { postGuid, reason: 'Spam' }))).toBe('done')
    await pod.db('users').where({ id: ben.userId }).update({ role: null })

    expect(await pod.db('mails')).toEqual([])
    expect(await pod.db('outbox').where({ queue: 'mail' })).toEqual([])
  })

  it('needs a reason, and something that is there', async () => {
    const { pod, ann, ben } = domainPod
    const { guid: postGuid } = await publishPost(pod, ann, { text: 'Good morning', public: true })
    const other = await publishPost(pod, ann, { text: 'Good evening', public: true })
    const { guid: commentGuid } = await createComment(pod, ben, { postGuid: other.guid, text: 'Hello' })
    const hidden = await addPost(pod, { id: ann.personId }, { public: false })

    expect(await reasonOf(createReport(pod, ben, { postGuid, reason: ' \n' }))).toBe('reason_invalid')
    expect(await reasonOf(createReport(pod, ben, { postGuid, reason: 'x'.repeat(65_536) }))).toBe('reason_invalid')
    expect(await reasonOf(createReport(pod, ben, { postGuid, commentGuid, reason: 'Spam' }))).toBe('comment_not_found')
    expect(await reasonOf(createReport(pod, ben, { postGuid: hidden.guid, reason: 'Spam' }))).toBe('post_not_found')
  })
})
