import { afterAll, beforeAll, beforeEach, describe, it, vi } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { Post } from '../../src/persistence/models/post.js'
import { type ApiPerson, expectError } from '../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'

let api: SampleApiPod
let alice: ApiPerson
beforeAll(async () => {
  api = await startSampleApiPod()
  ;({ alice } = api)
})
afterAll(() => api.close())

describe('a missing entity is reported before errors in', () => {
  const nowhere = newGuid()

  it.each([
    [`/posts/${nowhere}/comments`, { body: '\0' }],
    [`/posts/${nowhere}/report`, { reason: '\0' }],
    [`/posts/${nowhere}/hide`, { hide: '\0' }],
    [`/posts/${nowhere}/vote`, { poll_answer: '\0' }],
    [`/conversations/${nowhere}/messages`, { body: '\0' }],
  ])('the texts of a body: %s', async (path, body) => {
    expectError(await alice.post(path, body), 404)
  })

  it.each([
    ['a text that none can be', 'before=%00'],
    ['one that is too long', `after=${'1'.repeat(3_000)}`],
  ])('a query: %s', async (_what, query) => {
    expectError(await alice.get(`/users/${nowhere}/posts?${query}`), 404)
    expectError(await alice.get(`/users/${alice.guid}/posts?${query}`), 422)
  })

  it('errors of an existing entity are those of the text', async () => {
    expectError(await alice.post(`/posts/${api.bobPost}/comments`, { body: 'a\0b' }), 422)
  })
})

describe('a post that is deleted during a concurrent request', () => {
  let post: string
  let answerId: number
  let comment: string
  beforeEach(async () => {
    post = await publish(api, api.bob, {
      text: 'Soon gone',
      public: true,
      poll: { question: '?', answers: ['y', 'n'] },
    })
    comment = (await createComment(api.pod, api.bob.viewer, { postGuid: post, text: 'So it is' })).guid
    const posts = (await alice.get(`/users/${api.bob.guid}/posts`)).body
    answerId = posts.find(({ guid }: { readonly guid: string }) => guid === post).poll.poll_answers[0].id
  })

  it.each([
    ['subscribe', () => undefined],
    ['hide', () => ({ hide: true })],
    ['report', () => ({ reason: 'Why not' })],
    ['comments', () => ({ body: 'Well said' })],
    ['vote', () => ({ poll_answer: answerId })],
    ['comments/:comment/report', () => ({ reason: 'Why not' })],
    ['likes', () => undefined],
    ['comments/:comment/likes', () => undefined],
    ['reshares', () => undefined],
  ])('is a 404: %s', async (verb, body) => {
    const deletion = await api.pod.db.transaction()
    try {
      await Post.query(deletion).delete().where({ guid: post })
      const answer = alice.post(`/posts/${post}/${verb.replace(':comment', comment)}`, body())
      await vi.waitUntil(() => somebodyWaits(), { timeout: 30_000 })
      await deletion.commit()

      expectError(await answer, 404)
    } finally {
      if (!deletion.isCompleted()) await deletion.rollback()
    }
  })

  async function somebodyWaits(): Promise<boolean> {
    const waiting = await api.pod
      .db('pg_stat_activity')
      .whereRaw('datname = current_database()')
      .where({ waitEventType: 'Lock' })
      .first('pid')
    return waiting !== undefined
  }
})
