import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createComment } from '../../src/domain/interactions/comments.js'
import { CONCURRENT_REQUESTS, countStatuses } from '../support/assertions/concurrent-requests.js'
import type { ApiPerson } from '../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'
import { queueBackends } from '../support/queues/queue-backends.js'

describe.each(queueBackends)('twenty at once, with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  /** A poll of Bob's that nothing has happened to, with a comment under it. */
  let post: string
  let comment: string
  beforeAll(async () => {
    // The concurrency is real: each request has a connection. The time limits of a worker leave slow machines enough time.
    api = await startSampleApiPod({
      queue: backend,
      process: 'worker',
      environment: { DATABASE_POOL: String(CONCURRENT_REQUESTS) },
    })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, { text: 'Lunch?', public: true, poll: { question: 'Noon?', answers: ['y', 'n'] } })
    comment = (await createComment(api.pod, bob.viewer, { postGuid: post, text: 'Anybody?' })).guid
  })

  async function rowsOf(table: string, where: object): Promise<number> {
    return (await api.pod.db(table).where(where)).length
  }
  const postId = async (): Promise<number> => (await api.pod.db('posts').where({ guid: post }).first('id')).id
  const ofPost = async () => ({ postId: await postId() })

  it('subscribe: one succeeds, and leaves one subscription', async () => {
    const statuses = await countStatuses(() => alice.post(`/posts/${post}/subscribe`))

    expect(statuses).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    const rows = await api.pod.db('participations').where({ ...(await ofPost()), authorId: alice.viewer.personId })
    expect(rows).toMatchObject([{ count: 1 }])
  })

  it('mute: one succeeds, and no participation is left', async () => {
    await alice.post(`/posts/${post}/subscribe`)

    const statuses = await countStatuses(() => alice.post(`/posts/${post}/mute`))

    expect(statuses).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('participations', { ...(await ofPost()), authorId: alice.viewer.personId })).toBe(0)
    expect(await rowsOf('mutedPosts', await ofPost())).toBe(1)
  })

  it('hide and unhide: one succeeds', async () => {
    const hidden = await countStatuses(() => alice.post(`/posts/${post}/hide`, { hide: true }))
    expect(hidden).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('hiddenPosts', await ofPost())).toBe(1)

    const shown = await countStatuses(() => alice.post(`/posts/${post}/hide`, { hide: false }))
    expect(shown).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('hiddenPosts', await ofPost())).toBe(0)
  })

  it('vote: one succeeds, for any choice of the others', async () => {
    const { id: pollId } = await api.pod
      .db('polls')
      .where(await ofPost())
      .first('id')
    const answers: { id: number }[] = await api.pod.db('pollAnswers').where({ pollId }).orderBy('position')

    const statuses = await countStatuses((number) =>
      alice.post(`/posts/${post}/vote`, { poll_answer: answers[number % answers.length]?.id }),
    )

    expect(statuses).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('pollParticipations', { pollId })).toBe(1)
    const counted: { voteCount: number }[] = await api.pod.db('pollAnswers').where({ pollId })
    expect(counted.map(({ voteCount }) => voteCount).sort()).toEqual([0, 1])
    const rows = await api.pod.db('participations').where({ ...(await ofPost()), authorId: alice.viewer.personId })
    expect(rows).toMatchObject([{ count: 1 }])
  })

  it('report of a post: one is stored', async () => {
    const statuses = await countStatuses((number) =>
      alice.post(`/posts/${post}/report`, { reason: `Reason ${number}` }),
    )

    expect(statuses).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('reports', await ofPost())).toBe(1)
  })

  it('report of a comment: one is stored', async () => {
    const path = `/posts/${post}/comments/${comment}/report`

    const statuses = await countStatuses((number) => alice.post(path, { reason: `Reason ${number}` }))

    expect(statuses).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    const { id: commentId } = await api.pod.db('comments').where({ guid: comment }).first('id')
    expect(await rowsOf('reports', { commentId })).toBe(1)
  })

  it('block and unblock: one succeeds', async () => {
    const pair = { userId: alice.viewer.userId, personId: api.eve.viewer.personId }

    const blocked = await countStatuses(() => alice.post(`/users/${api.eve.guid}/block`))
    expect(blocked).toEqual({ 201: 1, 409: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('blocks', pair)).toBe(1)

    const unblocked = await countStatuses(() => alice.delete(`/users/${api.eve.guid}/block`))
    expect(unblocked).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect(await rowsOf('blocks', pair)).toBe(0)
  })

  it('delete of a comment: one succeeds, and it is counted once', async () => {
    await bob.post(`/posts/${post}/comments`, { body: 'Nobody.' })

    const statuses = await countStatuses(() => bob.delete(`/posts/${post}/comments/${comment}`))

    expect(statuses).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect(await api.pod.db('posts').where({ guid: post }).first('commentsCount')).toEqual({ commentsCount: 1 })
  })
})
