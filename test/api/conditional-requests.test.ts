import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ApiPerson } from '../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'

const lists = [
  '/aspects',
  '/conversations',
  '/notifications',
  '/photos',
  '/search/posts?tag=cats',
  '/search/tags?query=c',
  '/search/users?name_or_handle=bob',
  '/streams/activity',
  '/streams/aspects',
  '/streams/commented',
  '/streams/liked',
  '/streams/main',
  '/streams/mentions',
  '/streams/tags',
  '/tag_followings',
]

describe('reads of the API', () => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  beforeAll(async () => {
    api = await startSampleApiPod()
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())

  const read = (path: string, headers: Record<string, string> = {}, who = alice) =>
    api.call({ path, token: who.token, headers })
  const tagOf = async (path: string, who = alice) => String((await read(path, {}, who)).headers.etag)
  const pathsOf = () => [
    ...lists,
    '/user',
    `/users/${bob.guid}`,
    `/users/${bob.guid}/posts`,
    `/users/${bob.guid}/photos`,
    `/users/${alice.guid}/contacts`,
    `/aspects/${api.friendsAspectId}`,
    `/aspects/${api.friendsAspectId}/contacts`,
    `/posts/${api.alicePost}`,
    `/posts/${api.alicePost}/comments`,
    `/posts/${api.alicePost}/likes`,
    `/posts/${api.alicePost}/reshares`,
  ]

  it('have a weak ETag, and are a 304 without a body for a client with this version', async () => {
    for (const path of pathsOf()) {
      const first = await read(path)
      const etag = String(first.headers.etag)
      expect([path, first.status, first.headers.vary]).toEqual([path, 200, 'Authorization, Accept-Encoding'])
      expect(etag).toMatch(/^W\/"[\w-]{22}"$/)
      expect(first.headers['cache-control']).toBe('private, no-store')

      const again = await read(path, { 'if-none-match': etag })
      expect([path, again.status, again.text]).toEqual([path, 304, ''])
      expect(again.headers).toMatchObject({
        etag,
        vary: 'Authorization, Accept-Encoding',
        'cache-control': 'private, no-store',
      })
      expect(again.headers['content-type']).toBeUndefined()
    }
  })

  it('compare weakly, and accept lists of tags and *', async () => {
    const etag = await tagOf('/streams/main')
    const statusFor = async (known: string) => (await read('/streams/main', { 'if-none-match': known })).status

    expect(await statusFor(`"a", ${etag}`)).toBe(304)
    expect(await statusFor(`W/"a,b",${etag.slice(2)}, "c"`)).toBe(304)
    expect(await statusFor('*')).toBe(304)
    expect(await statusFor('W/"a", "b"')).toBe(200)
    expect(await statusFor(etag.slice(3, -1))).toBe(200)
    expect(await statusFor('')).toBe(200)
  })

  it('have another ETag when the content changes, and for each viewer whose content differs', async () => {
    const path = `/posts/${api.alicePost}`
    const before = await tagOf(path)
    await bob.post(`${path}/likes`)

    const after = await read(path, { 'if-none-match': before })
    expect([after.status, after.body.interaction_counters.likes]).toEqual([200, 1])
    expect(await tagOf(path, bob)).not.toBe(after.headers.etag)
  })

  it('have another ETag when only the link to the next page appears', async () => {
    await bob.post(`/posts/${api.bobPost}/comments`, { body: 'one' })
    const path = `/posts/${api.bobPost}/comments?per_page=1`
    const before = await tagOf(path)
    await bob.post(`/posts/${api.bobPost}/comments`, { body: 'two' })

    const after = await read(path, { 'if-none-match': before })
    expect([after.status, after.body.length, after.links.next]).toEqual([200, 1, expect.any(String)])
  })

  it('answer HEAD with the same headers, and 304 as well', async () => {
    const head = (headers = {}) =>
      api.app.inject({
        method: 'HEAD',
        url: '/api/v1/streams/main',
        headers: { authorization: `Bearer ${alice.token}`, ...headers },
      })
    const got = await api.app.inject({
      url: '/api/v1/streams/main',
      headers: { authorization: `Bearer ${alice.token}`, 'accept-encoding': 'gzip' },
    })
    const headed = await head({ 'accept-encoding': 'gzip' })
    const named = ['etag', 'vary', 'cache-control', 'content-type', 'content-encoding', 'content-length', 'link']
    const comparableHeaders = ({ headers }: { headers: Record<string, unknown> }) =>
      named.map((name) => [name, headers[name]])

    expect(headed.headers['content-encoding']).toBe('gzip')
    expect([headed.statusCode, headed.body, comparableHeaders(headed)]).toEqual([200, '', comparableHeaders(got)])
    const known = await head({ 'if-none-match': String(headed.headers.etag) })
    expect([known.statusCode, known.body, known.headers['content-length']]).toEqual([304, '', undefined])
  })

  it('have no ETag when they fail', async () => {
    const missing = await read('/posts/0000000000000000', { 'if-none-match': '*' })

    expect([missing.status, missing.headers.etag]).toEqual([404, undefined])
  })

  it('writes return no ETag, for every If-None-Match', async () => {
    const answer = await api.call({
      method: 'POST',
      path: '/posts',
      token: alice.token,
      body: { body: 'new', public: true },
      headers: { 'if-none-match': '*' },
    })

    expect([answer.status, answer.headers.etag]).toEqual([200, undefined])
  })

  it('lets web apps of other origins send and read tags', async () => {
    const preflight = await api.app.inject({ method: 'OPTIONS', url: '/api/v1/user' })
    expect(preflight.headers['access-control-allow-headers']).toContain('If-None-Match')
    expect((await read('/user')).headers['access-control-expose-headers']).toContain('ETag')
  })

  it('a new post changes the ETag at once', async () => {
    const before = await tagOf('/streams/main')
    await publish(api, bob, { text: 'News', public: true })

    expect((await read('/streams/main', { 'if-none-match': before })).status).toBe(200)
  })
})
