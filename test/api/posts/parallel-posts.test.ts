import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { CONCURRENT_REQUESTS, countStatuses } from '../../support/assertions/concurrent-requests.js'
import type { ApiClient, ApiPerson, ApiResponse } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('twenty at once, with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  /** A public post of Bob's that nothing has happened to, and a comment of Carol's under it. */
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
    post = await publish(api, bob, { text: 'Good evening', public: true })
    comment = (await api.carol.post(`/posts/${post}/comments`, { body: 'So it is' })).body.guid
  })

  const read = async (guid = post, who: ApiClient = alice): Promise<ApiResponse['body']> =>
    (await who.get(`/posts/${guid}`)).body
  const likesOfComment = async () => (await alice.get(`/posts/${post}/comments`)).body[0].interactions
  /** The number of reasons for which alice is notified about the post. */
  async function reasons(): Promise<number> {
    const { id: postId } = await api.pod.db('posts').where({ guid: post }).first('id')
    const row = await api.pod.db('participations').where({ postId, authorId: alice.viewer.personId }).first('count')
    return row?.count ?? 0
  }
  async function pendingPhotos(count: number): Promise<readonly string[]> {
    const photos = Array.from({ length: count }, newGuid)
    const authorId = alice.viewer.personId
    await api.pod.db('photos').insert(photos.map((guid) => ({ guid, authorId, pending: true, name: `${guid}.png` })))
    return photos
  }
  /** The number of likes enqueued for delivery to other pods. */
  const likesTold = async () => (await api.pod.db('outbox').whereRaw(`data ->> 'record' = 'like'`)).length

  it('like and unlike of a post: one succeeds', async () => {
    const path = `/posts/${post}/likes`
    const told = await likesTold()

    expect(await countStatuses(() => alice.post(path))).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    expect(await read()).toMatchObject({ interaction_counters: { likes: 1 }, own_interaction_state: { liked: true } })
    expect((await alice.get(path)).body).toHaveLength(1)
    expect([await reasons(), (await likesTold()) - told]).toEqual([1, 1])

    expect(await countStatuses(() => alice.delete(path))).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect(await read()).toMatchObject({ interaction_counters: { likes: 0 }, own_interaction_state: { liked: false } })
    expect([(await alice.get(path)).body, await reasons()]).toEqual([[], 0])
  })

  it('like and unlike of a comment: one succeeds', async () => {
    const path = `/posts/${post}/comments/${comment}/likes`

    expect(await countStatuses(() => alice.post(path))).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    expect([await likesOfComment(), await reasons()]).toEqual([{ liked: true, likes_count: 1 }, 1])

    expect(await countStatuses(() => alice.delete(path))).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
    expect([await likesOfComment(), await reasons()]).toEqual([{ liked: false, likes_count: 0 }, 0])
  })

  it('likes and unlikes: the counter equals the number of rows', async () => {
    const people: readonly ApiPerson[] = [alice, bob, api.carol, api.dan, api.eve]
    const path = `/posts/${post}/likes`

    const statuses = await countStatuses((number) => {
      const who = people[number % people.length] ?? alice
      return number % 3 === 0 ? who.delete(path) : who.post(path)
    })

    expect(Object.keys(statuses).sort()).toEqual(expect.arrayContaining(['204', '409']))
    for (const status of Object.keys(statuses)) expect(['204', '409', '410']).toContain(status)
    const { body } = await alice.get(path)
    expect((await read()).interaction_counters.likes).toBe(body.length)
    expect(await reasons()).toBe((await read()).own_interaction_state.liked ? 1 : 0)
  })

  it('reshare: one succeeds, and it is counted once', async () => {
    const path = `/posts/${post}/reshares`

    expect(await countStatuses(() => alice.post(path))).toEqual({ 200: 1, 409: CONCURRENT_REQUESTS - 1 })

    expect(await read()).toMatchObject({
      interaction_counters: { reshares: 1 },
      own_interaction_state: { reshared: true },
    })
    const { body } = await alice.get(path)
    expect([body.length, await reasons()]).toEqual([1, 1])
    expect((await bob.get(`/posts/${body[0].guid}`)).body.own_interaction_state.subscribed).toBe(true)

    const removed = await countStatuses(() => alice.delete(`/posts/${body[0].guid}`))
    expect(removed).toEqual({ 204: 1, 404: CONCURRENT_REQUESTS - 1 })
    expect(await read()).toMatchObject({
      interaction_counters: { reshares: 0 },
      own_interaction_state: { reshared: false },
    })
    expect(await reasons()).toBe(0)
  })

  it('delete of a post: one succeeds', async () => {
    expect(await countStatuses(() => bob.delete(`/posts/${post}`))).toEqual({ 204: 1, 404: CONCURRENT_REQUESTS - 1 })
    expect((await alice.get(`/posts/${post}`)).status).toBe(404)
    expect(await api.pod.db('tombstones').where({ guid: post })).toHaveLength(1)
  })

  it('a concurrent deletion of the post: every other request is a 404 or succeeds, and no row is left', async () => {
    const calls = [
      () => bob.delete(`/posts/${post}`),
      () => alice.post(`/posts/${post}/likes`),
      () => alice.delete(`/posts/${post}/likes`),
      () => alice.post(`/posts/${post}/comments/${comment}/likes`),
      () => alice.delete(`/posts/${post}/comments/${comment}/likes`),
      () => alice.post(`/posts/${post}/comments`, { body: 'Too late?' }),
      () => api.carol.delete(`/posts/${post}/comments/${comment}`),
      () => alice.post(`/posts/${post}/subscribe`),
      () => alice.post(`/posts/${post}/mute`),
      () => alice.post(`/posts/${post}/reshares`),
      () => alice.get(`/posts/${post}`),
      () => alice.get(`/posts/${post}/likes`),
    ]

    const statuses = await countStatuses((number) => (calls[number % calls.length] ?? read)() as Promise<ApiResponse>)

    for (const status of Object.keys(statuses)) expect(['200', '201', '204', '404', '409', '410']).toContain(status)
    expect((await alice.get(`/posts/${post}`)).status).toBe(404)
    for (const table of ['likes', 'participations']) {
      const left = await api.pod.db(table).whereNotNull('postId').whereNotIn('postId', api.pod.db('posts').select('id'))
      expect(left).toEqual([])
    }
  })

  it('posts with the same photo: one succeeds, the others store nothing', async () => {
    const photos = await pendingPhotos(1)
    const posts = async () => (await api.pod.db('posts').where({ authorId: alice.viewer.personId })).length
    const before = await posts()

    const statuses = await countStatuses(() => alice.post('/posts', { public: true, photos }))

    expect(statuses).toEqual({ 200: 1, 422: CONCURRENT_REQUESTS - 1 })
    expect((await posts()) - before).toBe(1)
  })

  it('photos that are attached and deleted: no post is empty', async () => {
    const photos = await pendingPhotos(CONCURRENT_REQUESTS / 2)

    const statuses = await countStatuses((number) => {
      const photo = photos[number >> 1] ?? ''
      return number % 2 === 0
        ? alice.delete(`/photos/${photo}`)
        : alice.post('/posts', { public: true, photos: [photo] })
    })

    for (const status of Object.keys(statuses)) expect(['200', '204', '404', '422']).toContain(status)
    expect(statuses[204]).toBe(photos.length)
    const { db } = api.pod
    const empty = db('posts').where({ authorId: alice.viewer.personId, type: 'StatusMessage', text: '' })
    expect(await empty.whereNotIn('id', db('photos').select('postId').whereNotNull('postId'))).toEqual([])
  })

  it('posts with the same tags and mentions: all succeed', async () => {
    const body = `#${newGuid()} #${newGuid()} @{${bob.address}} @{${api.carol.address}}`

    expect(await countStatuses(() => alice.post('/posts', { public: true, body }))).toEqual({
      200: CONCURRENT_REQUESTS,
    })
  })
})
