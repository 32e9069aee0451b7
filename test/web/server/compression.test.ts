import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type NewPost, publishPost } from '../../../src/domain/posts/publish-post.js'
import { OIDC_PATHS } from '../../../src/web/oidc/paths.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const unpack = { br: brotliDecompressSync, gzip: gunzipSync }

describe('compression', () => {
  let pod: TestPod
  let ann: TestPerson
  let post: string
  beforeAll(async () => {
    pod = await buildPod()
    ;({ ann } = await pod.people('ann'))
    post = await publish({ text: 'Good morning, everybody. '.repeat(80) })
  })
  afterAll(() => pod.close())

  const publish = async (input: Partial<NewPost>) =>
    (await publishPost(pod.pod, await viewerOf(pod.pod, ann), { text: 'x', public: true, ...input })).guid
  const get = (url: string, encoding?: string) =>
    pod.inject({
      url,
      headers: {
        // The page itself is rendered elsewhere, within a time that depends on the machine.
        ...(url.startsWith('/posts') && { accept: 'application/json' }),
        ...(url.startsWith('/api/v1') && { authorization: `Bearer ${ann.token}` }),
        ...(encoding !== undefined && { 'accept-encoding': encoding }),
      },
    })

  it.each(['br', 'gzip'] as const)(
    'makes lists, posts and pages smaller with %s, and changes nothing else',
    async (coding) => {
      for (const url of ['/api/v1/streams/main', `/api/v1/posts/${post}`, `/posts/${post}`, '/api/docs/json']) {
        const plain = await get(url)
        const packed = await get(url, coding)

        expect([url, plain.statusCode, plain.headers['content-encoding']]).toEqual([url, 200, undefined])
        expect([url, packed.statusCode, packed.headers['content-encoding']]).toEqual([url, 200, coding])
        expect(unpack[coding](packed.rawPayload).toString()).toBe(plain.body)
        expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length)
        expect(packed.headers['content-length']).toBe(String(packed.rawPayload.length))
        for (const { headers } of [plain, packed]) expect(headers.vary).toContain('Accept-Encoding')
        expect(packed.headers.etag).toBe(plain.headers.etag)
      }
    },
  )

  it('a page that is too large for the event loop is compressed', async () => {
    const text = Array.from({ length: 6_000 }, (_, each) => `word${each}`).join(' ')
    const large = await publish({ text })
    const { headers, rawPayload } = await get(`/api/v1/posts/${large}`, 'br')

    expect(headers['content-encoding']).toBe('br')
    expect(JSON.parse(brotliDecompressSync(rawPayload).toString()).body).toBe(text)
  })

  it.each([
    ['br, gzip', 'br'],
    ['gzip, deflate, br', 'br'],
    ['gzip;q=1.0, br;q=0.5', 'gzip'],
    ['GZIP', 'gzip'],
    ['x-gzip', 'gzip'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['br;q=0', undefined],
    ['*;q=0', undefined],
    ['identity', undefined],
    ['deflate', undefined],
    ['br;q=2, ;;;,', undefined],
    [`${'br;'.repeat(1_000)}`, undefined],
    ['', undefined],
  ])('answers Accept-Encoding: %s with %s', async (accepted, coding) => {
    expect((await get('/api/v1/streams/main', accepted)).headers['content-encoding']).toBe(coding)
  })

  it('leaves short responses, errors, responses to writes, and pictures unchanged', async () => {
    const created = await pod.inject({
      method: 'POST',
      url: '/api/v1/posts',
      headers: { authorization: `Bearer ${ann.token}`, 'accept-encoding': 'gzip' },
      payload: { body: 'long '.repeat(1_000), public: true },
    })
    const others = await Promise.all(
      ['/api/v1/aspects', '/api/v1/posts/0000000000000000', '/images/user/default.png', '/nonsense'].map((url) =>
        get(url, 'gzip, br'),
      ),
    )

    for (const { headers } of [created, ...others]) expect(headers['content-encoding']).toBeUndefined()
  })

  // Their length would reveal the form token (BREACH).
  it('never touches pages with forms, sign-in, sign-up or tokens', async () => {
    const urls = pod.app.knownRoutes
      .filter(
        ({ method, url }) => [method].flat().includes('GET') && /^\/(users|api\/openid_connect|$)(\/|$)/.test(url),
      )
      .map(({ url }) => url)
    expect(urls).toEqual(expect.arrayContaining(['/', OIDC_PATHS.signUp, OIDC_PATHS.applications]))

    for (const url of new Set(urls)) {
      const { headers } = await get(url.replace(/:\w+/g, 'x'), 'gzip, br')
      expect([url, headers['content-encoding'], headers.vary ?? '']).toEqual([
        url,
        undefined,
        expect.not.stringContaining('Accept-Encoding'),
      ])
    }
  })
})
