import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { type ApiClient, type ApiPerson, type ApiResponse, expectError } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('with the queue in $store', (backend) => {
  const spam = { reason: 'It sells watches.' }

  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  /** A public post by Bob, and a comment on it by Carol. */
  let post: string
  let comment: string
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, { text: 'Good morning', public: true })
    comment = (await createComment(api.pod, api.carol.viewer, { postGuid: post, text: 'Cheap watches' })).guid
  })

  const reports = () => api.pod.db('reports').select('userId', 'reason', 'postId', 'commentId')
  const isPostReported = async (reader: ApiPerson) => {
    const posts: ApiResponse['body'][] = (await reader.get(`/users/${bob.guid}/posts`)).body
    return posts.find(({ guid }) => guid === post).own_interaction_state.reported
  }
  const isCommentReported = async (reader: ApiPerson) => (await reader.get(`/posts/${post}/comments`)).body[0].reported

  describe('POST /posts/:post_guid/comments/:comment_guid/report', () => {
    const report = (client: ApiClient, body: object | string = spam, place = `${post}/comments/${comment}`) =>
      client.post(`/posts/${place}/report`, body)

    it('is visible to the reporter only', async () => {
      const answer = await report(alice)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expect([await isCommentReported(alice), await isCommentReported(bob)]).toEqual([true, false])
      expect(await isPostReported(alice)).toBe(false)
      expect((await api.carol.get('/notifications')).body).toEqual([])
    })

    it('a second report is rejected, also after review of the first', async () => {
      await report(alice)

      expectError(await report(alice, { reason: 'Again' }), 409)
      await api.pod.db('reports').update({ reviewedAt: new Date() })
      expectError(await report(alice), 409)
      expect((await report(bob)).status).toBe(204)
    })

    it('answers 404 for unknown comments, comments of another post, and unknown posts', async () => {
      for (const body of [spam, {}, { reason: '' }]) {
        expectError(await report(alice, body, `${post}/comments/${newGuid()}`), 404)
        expectError(await report(alice, body, `${api.bobPost}/comments/${comment}`), 404)
        expectError(await report(alice, body, `${newGuid()}/comments/${comment}`), 404)
        expectError(await report(alice, body, `${api.bobWorkPost}/comments/${comment}`), 404)
      }
    })

    it('needs a reason', async () => {
      for (const body of [
        {},
        { reason: '' },
        { reason: ' \n' },
        { reason: null },
        { reason: ['x'] },
        { reason: 'a\u0001' },
      ]) {
        expectError(await report(alice, body), 422)
      }
      expectError(await report(alice, { reason: 'x'.repeat(65_536) }), 422)
      expect(await isCommentReported(alice)).toBe(false)
    })

    it('is allowed for the author of the comment', async () => {
      expect((await report(api.carol)).status).toBe(204)
    })

    it('needs the scope interactions', async () => {
      expectError(await report(await alice.with('private:read')), 403)
    })
  })

  describe('POST /posts/:post_guid/report', () => {
    const report = (client: ApiClient, body: object | string = spam, guid = post) =>
      client.post(`/posts/${guid}/report`, body)

    it('is visible to the reporter only', async () => {
      const answer = await report(alice)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expect([await isPostReported(alice), await isPostReported(bob)]).toEqual([true, false])
      expect(await isCommentReported(alice)).toBe(false)
    })

    it('a second one is refused', async () => {
      await report(alice)

      expectError(await report(alice, { reason: 'Again' }), 409)
      const { id: postId } = await api.pod.db('posts').where({ guid: post }).first('id')
      expect((await reports()).filter((each) => each.postId === postId)).toEqual([
        { userId: alice.viewer.userId, postId, commentId: null, ...spam },
      ])
    })

    it('needs a reason', async () => {
      for (const body of [{}, { reason: '' }, { reason: 7 }, '{', '"x"']) {
        const headers = { 'content-type': 'application/json' }
        const path = `/posts/${post}/report`
        expectError(await api.call({ method: 'POST', path, token: alice.token, body, headers }), 422)
      }
      expect(await isPostReported(alice)).toBe(false)
    })

    it('finds no post that is not there, or not for the reporter', async () => {
      for (const guid of [api.bobWorkPost, newGuid()]) {
        for (const body of [spam, {}]) expectError(await report(alice, body, guid), 404)
      }
      expectError(await report(await alice.with('interactions'), spam, api.bobFriendsPost), 404)
      expect((await report(alice, spam, api.bobFriendsPost)).status).toBe(204)
    })
  })
})
