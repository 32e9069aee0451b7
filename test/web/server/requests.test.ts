import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiRoutes } from '../../../src/web/routes/api/api-routes.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const Body = Type.Object({
  text: Type.Optional(Type.String()),
  count: Type.Optional(Type.Integer()),
  tags: Type.Optional(Type.Array(Type.String())),
})
const Query = Type.Object({ page: Type.Optional(Type.Integer()), text: Type.Optional(Type.String()) })
const Params = Type.Object({ guid: Type.String({ pattern: '^[0-9A-Za-z._@:-]{16,255}$' }) })

/** Calls of every form, before there are any in the API itself. */
const routes: FastifyPluginAsyncTypebox = async (app) => {
  await apiRoutes(app, {})
  const config = { public: true } as const
  app.post('/texts', { schema: { body: Body }, config }, async ({ body }) => ({ body }))
  app.post('/block', { config }, async (_request, reply) => reply.code(204).send())
  app.delete('/block', { config }, async (_request, reply) => reply.code(204).send())
  app.get('/list', { schema: { querystring: Query }, config }, async ({ query }) => ({ query }))
  app.get('/texts/:guid', { schema: { params: Params }, config }, async ({ params }) => ({ params }))
  app.get('/tags/:name', { config }, async ({ params }) => ({ params }))
  app.post(
    '/strict',
    { schema: { body: Body }, config: { ...config, refusals: { malformed: 422, invalid: 400 } } },
    async ({ body }) => ({ body }),
  )
}

let pod: TestPod
beforeAll(async () => {
  pod = await buildPod({ api: routes })
})
afterAll(() => pod.close())

function post(url: string, payload?: string, type = 'application/json') {
  return pod.inject({ method: 'POST', url, headers: { 'content-type': type }, ...(payload && { payload }) })
}

describe('paths', () => {
  it.each(['/api/v1//texts', '//api/v1/texts', '/api//v1///texts', '/api/v1/texts/', '/api/v1/texts.json'])(
    'takes %s for the path it means',
    async (url) => {
      expect((await post(url, '{"text":"a"}')).json()).toEqual({ body: { text: 'a' } })
    },
  )

  it('keeps an encoded slash within its path segment', async () => {
    const response = await pod.inject('/api/v1/tags/caf%C3%A9%2F%2Fbar%3F')

    expect(response.json()).toEqual({ params: { name: 'café//bar?' } })
  })

  it('finds a guid of 255 characters, each of them encoded', async () => {
    const guid = `${':'.repeat(254)}a`

    const response = await pod.inject(`/api/v1/texts/${encodeURIComponent(guid)}`)

    expect(response.json()).toEqual({ params: { guid } })
  })

  it.each([
    ['an unknown path', 'GET', '/api/v1/nonsense'],
    ['the API itself', 'GET', '/api/v1'],
    ['another version', 'GET', '/api/v2/user'],
    ['a wrong method', 'DELETE', '/api/v1/user'],
    ['an unused method', 'PROPFIND', '/api/v1/user'],
    ['a guid that no object can have', 'GET', '/api/v1/texts/short'],
    ['a parameter longer than any', 'GET', `/api/v1/tags/${'a'.repeat(301)}`],
    ['a path that cannot be decoded', 'GET', '/api/v1/texts/%zz%ff%'],
    ['a method that must have a body and has none', 'QUERY', '/api/v1/user'],
    ['a name that nothing can have', 'GET', '/api/v1/tags/a%00b'],
    ['letters of the path that are encoded', 'GET', '/%61pi/v1/nonsense'],
  ])('answers 404 in JSON for %s', async (_name, method, url) => {
    const response = await pod.inject({ method: method as 'GET', url })

    expect(response.statusCode).toBe(404)
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(response.json()).toEqual({ code: 404, message: expect.any(String), reason: 'not_found' })
    expect(response.headers['cache-control']).toBe('private, no-store')
  })

  it('does not read a body on a route without one', async () => {
    expect((await post('/api/v1/nonsense', '{broken')).statusCode).toBe(404)
    expect((await post('/nonsense', 'x'.repeat(2 ** 21))).statusCode).toBe(404)
    expect((await post('/api/v1/nonsense', '{}', ';;;')).statusCode).toBe(404)
  })

  it('answers HEAD like GET, without the body', async () => {
    const [get, head] = await Promise.all([
      pod.inject('/api/v1/list'),
      pod.inject({ method: 'HEAD', url: '/api/v1/list' }),
    ])

    expect(head.statusCode).toBe(200)
    expect(head.body).toBe('')
    expect(head.headers['content-length']).toBe(get.headers['content-length'])
  })

  it('refuses an address that is longer than any link', async () => {
    const response = await pod.inject(`/api/v1/list?text=${'a'.repeat(8 * 1024)}`)

    expect(response.statusCode).toBe(414)
    expect(response.json()).toMatchObject({ code: 414 })
  })

  it('refuses a path parameter that is too long with the same answer', async () => {
    for (const length of [8_200, 15_000]) {
      const response = await pod.inject(`/api/v1/tags/${'a'.repeat(length)}`)

      expect([response.statusCode, response.json()]).toEqual([
        414,
        { code: 414, message: 'The URL is too long.', reason: 'url_too_long' },
      ])
      expect(response.headers['x-request-id']).toBeDefined()
    }
  })
})

describe('bodies', () => {
  it('reads JSON', async () => {
    expect((await post('/api/v1/texts', '{"tags":["a"],"count":3}')).json().body).toEqual({ tags: ['a'], count: 3 })
  })

  it('reads JSON that begins with a byte order mark', async () => {
    expect((await post('/api/v1/texts', '\ufeff{"text":"a"}')).json().body).toEqual({ text: 'a' })
  })

  it('reads a form', async () => {
    const response = await post('/api/v1/texts', 'tags[]=a&tags[]=b&text=c', 'application/x-www-form-urlencoded')

    expect(response.json().body).toEqual({ tags: ['a', 'b'], text: 'c' })
  })

  it.each(['application/json', 'application/x-www-form-urlencoded', 'text/plain', undefined])(
    'takes an empty body for an empty object when the type is %s',
    async (type) => {
      const response = await pod.inject({
        method: 'POST',
        url: '/api/v1/texts',
        headers: type ? { 'content-type': type } : {},
      })

      expect(response.json()).toEqual({ body: {} })
    },
  )

  it.each(['{', '{"a":1,}', 'a=b', '[]', '"text"', '3', 'null', 'true', '[{"text":"a"}]'])(
    'answers 400 for the body %s',
    async (payload) => {
      const response = await post('/api/v1/texts', payload)

      expect(response.statusCode).toBe(400)
      expect(response.json()).toEqual({ code: 400, message: expect.any(String), reason: 'malformed_body' })
    },
  )

  it('answers a malformed and an invalid body with the statuses of the route', async () => {
    expect((await post('/api/v1/strict', '{')).statusCode).toBe(422)
    expect((await post('/api/v1/strict', '[]')).statusCode).toBe(422)
    expect((await post('/api/v1/strict', '{"count":"3"}')).statusCode).toBe(400)
  })

  it('answers 422 for a value of another type, and coerces none', async () => {
    for (const payload of [
      '{"count":"3"}',
      '{"count":[3]}',
      '{"count":3.5}',
      '{"count":1e400}',
      '{"text":3}',
      '{"tags":"a"}',
      '{"text":null}',
    ]) {
      const response = await post('/api/v1/texts', payload)
      expect([payload, response.statusCode]).toEqual([payload, 422])
      const [field] = Object.keys(JSON.parse(payload))
      expect(response.json()).toEqual({ code: 422, message: expect.any(String), reason: 'field_invalid', field })
    }
  })

  it.each(['\\u0000', '\\u0008', '\\u001b', '\\ud800', '\\udc00\\ud800', '\\ufffe', '\\uffff'])(
    'answers 422 for a text with %s in it, which can be neither stored nor sent on',
    async (code) => {
      expect((await post('/api/v1/texts', `{"text":"a${code}b"}`)).statusCode).toBe(422)
      expect((await post('/api/v1/texts', `{"tags":["a","b${code}"]}`)).statusCode).toBe(422)
      expect((await post('/api/v1/strict', `{"text":"${code}"}`)).statusCode).toBe(400)
    },
  )

  it('keeps a text unchanged, with line breaks and all scripts', async () => {
    const text = 'a\tb\r\nc\u007f\u0085é\u2028\ufffd🌻'

    expect((await post('/api/v1/texts', JSON.stringify({ text }))).json().body).toEqual({ text })
  })

  it('accepts a list that fills the largest body', async () => {
    const response = await post('/api/v1/texts', `{"unknown":[${'1,'.repeat(500_000)}1]}`)

    expect(response.statusCode).toBe(200)
  })

  it('ignores unknown fields of any name', async () => {
    const response = await post('/api/v1/texts', '{"text":"a","__proto__":{"polluted":1},"unknown":[1]}')

    expect(response.json().body).toMatchObject({ text: 'a' })
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  it.each([
    'text/plain',
    'application/xml',
    'multipart/form-data; boundary=x',
    'application/json-patch+json',
    'nonsense',
  ])('answers 415 for a body of type %s', async (type) => {
    const response = await post('/api/v1/texts', 'something', type)

    expect(response.statusCode).toBe(415)
    expect(response.json()).toMatchObject({ code: 415 })
  })

  it('answers 415 for a compressed body', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    const response = await pod.inject({ method: 'POST', url: '/api/v1/texts', headers, payload: '{}' })

    expect(response.statusCode).toBe(415)
  })

  it('accepts Content-Encoding: identity in any case', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'Identity' }
    const response = await pod.inject({ method: 'POST', url: '/api/v1/texts', headers, payload: '{"text":"a"}' })

    expect(response.json()).toEqual({ body: { text: 'a' } })
  })

  it.each(['POST', 'DELETE'] as const)('ignores the body of a %s that needs none', async (method) => {
    const headers = { 'content-type': 'text/plain' }
    const response = await pod.inject({ method, url: '/api/v1/block', headers, payload: 'whatever' })

    expect(response.statusCode).toBe(204)
    expect(response.body).toBe('')
  })

  it.each(['POST', 'DELETE'] as const)('ignores the media type of a %s that needs no body', async (method) => {
    for (const type of ['junk', ';;;', '/', 'a/b/c', 'text / plain']) {
      const headers = { 'content-type': type }
      const response = await pod.inject({ method, url: '/api/v1/block', headers, payload: 'whatever' })

      expect([type, response.statusCode]).toEqual([type, 204])
    }
  })

  it('ignores unread fields with any content', async () => {
    expect((await post('/api/v1/texts', '{"text":"a","unknown":"\\u0000"}')).json()).toEqual({
      body: expect.objectContaining({ text: 'a' }),
    })
    expect((await post('/api/v1/texts', '{"text":"\\u0000"}')).statusCode).toBe(422)
    expect((await post('/api/v1/block', '{"unknown":"\\ud800"}')).statusCode).toBe(204)
  })

  it('answers 413 for a body over the limit, and accepts the largest one below it', async () => {
    const around = (characters: number) => JSON.stringify({ text: 'a'.repeat(characters) })

    expect((await post('/api/v1/texts', around(2 ** 20 - 20))).statusCode).toBe(200)
    const response = await post('/api/v1/texts', around(2 ** 20))
    expect(response.statusCode).toBe(413)
    expect(response.json()).toMatchObject({ code: 413 })
  })

  it('answers a deeply nested body', async () => {
    const response = await post('/api/v1/texts', `{"text":${'['.repeat(200_000)}${']'.repeat(200_000)}}`)

    expect(response.statusCode).toBe(422)
    expect(response.body.length).toBeLessThan(200)
  })
})

describe('queries', () => {
  it('reads numbers', async () => {
    expect((await pod.inject('/api/v1/list?page=2&unknown=1')).json().query.page).toBe(2)
  })

  it.each(['unknown=%1b', `unknown=${'a'.repeat(2_000)}`, 'unknown[]=x&unknown=%00'])(
    'ignores the unknown parameter ?%s',
    async (query) => {
      expect((await pod.inject(`/api/v1/list?page=2&${query}`)).statusCode).toBe(200)
    },
  )

  it.each([
    'page=0x10',
    'page=Infinity',
    'page=1e9',
    'page=%202',
    'text=a%00b',
    'page=two',
    'page=2.5',
    'page=1&page=2',
    'page=',
    `text=${'a'.repeat(1_025)}`,
  ])('answers 422 for ?%s', async (query) => {
    const response = await pod.inject(`/api/v1/list?${query}`)

    expect(response.statusCode).toBe(422)
    expect(response.json()).toMatchObject({ code: 422 })
  })
})
