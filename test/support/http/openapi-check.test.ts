import { expect, it } from 'vitest'
import { type Response, readApiDocument } from './openapi-check.js'

const path = '/api/v1/users/0123456789abcdef'
const avatar = 'https://pod.example/a.png'
const images = { large: avatar, medium: avatar, small: avatar, raw: avatar }
const person = {
  guid: '0123456789abcdef',
  network_id: 'alice@pod.example',
  diaspora_id: 'alice@pod.example',
  name: 'Alice',
  avatar: images,
  tags: [],
  blocked: false,
  relationship: null,
  aspects: null,
}

/** The fields of a response that are checked. */
function responseOf(statusCode: number, body: unknown, more: Record<string, string> = {}): Response {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = { 'cache-control': 'private, no-store', 'content-type': 'application/json; charset=utf-8', ...more }
  return { statusCode, body: text, headers, json: () => body } as unknown as Response
}

const check = async (method: string, response: Response, requestPath = path) =>
  (await readApiDocument()).check(method, requestPath, response)

it('accepts responses that the document allows', async () => {
  await check('GET', responseOf(200, person))
  await check('GET', responseOf(404, { code: 404, message: 'no', reason: 'person_not_found' }))
  await check('GET', responseOf(503, { code: 503, message: 'later', reason: 'overloaded' }))
  await check('POST', responseOf(201, undefined), `${path}/block`)
  await check('GET', responseOf(404, { code: 404, message: 'no', reason: 'not_found' }), '/api/v1/nonsense')
})

it.each([
  ['a field of another type', 'GET', responseOf(200, { ...person, blocked: 'no' }), path],
  ['missing fields', 'GET', responseOf(200, { ...person, tags: undefined, name: undefined }), path],
  ['two names of one person', 'GET', responseOf(200, { ...person, diaspora_id: 'eve@pod.example' }), path],
  ['an address without a host', 'GET', responseOf(200, { ...person, avatar: { ...images, small: '/a.png' } }), path],
  ['an undocumented status', 'GET', responseOf(202, person), path],
  ['an undocumented call', 'PUT', responseOf(200, person), path],
  ['a body where there is none', 'POST', responseOf(201, {}), `${path}/block`],
  ['no body where there is one', 'GET', responseOf(200, undefined), path],
  [
    'an error with the code of another',
    'GET',
    responseOf(404, { code: 500, message: 'no', reason: 'not_found' }),
    path,
  ],
  ['an error without a reason', 'GET', responseOf(404, { code: 404, message: 'no' }), path],
  ['an unknown reason', 'GET', responseOf(404, { code: 404, message: 'no', reason: 'nobody' }), path],
  [
    'a reason of another operation',
    'GET',
    responseOf(404, { code: 404, message: 'no', reason: 'post_not_found' }),
    path,
  ],
  ['an error in another format', 'GET', responseOf(404, { error: 'no' }), path],
  [
    'a 401 without WWW-Authenticate',
    'GET',
    responseOf(401, { code: 401, message: 'no', reason: 'token_missing' }),
    path,
  ],
  ['a response for shared caches', 'GET', responseOf(200, person, { 'cache-control': 'public' }), path],
  ['another content type', 'GET', responseOf(200, person, { 'content-type': 'text/html' }), path],
])('rejects %s', async (_what, method, response, requestPath) => {
  await expect(check(method, response, requestPath)).rejects.toThrow()
})

it('checks times at every depth of a response', async () => {
  const photo = {
    guid: 'x',
    created_at: '2025-03-01T08:15:30.250Z',
    dimensions: { height: null, width: null },
    sizes: images,
  }
  await check('GET', responseOf(200, [photo]), `${path}/photos`)

  const invalid = responseOf(200, [photo, { ...photo, created_at: '2025-03-01T08:15:30Z' }])
  await expect(check('GET', invalid, `${path}/photos`)).rejects.toThrow('created_at')
})
