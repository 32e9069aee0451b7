import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeApi } from '../../../src/web/openapi/document.js'
import { ERROR_REASONS } from '../../../src/web/server/error-reasons.js'
import { type ApiPerson, type ApiPod, startApiPod } from '../../support/pods/api-pod.js'
import { aspectOf } from '../../support/pods/sample-api-pod.js'

let api: ApiPod
let alice: ApiPerson
beforeAll(async () => {
  api = await startApiPod({ environment: { WRITE_LIMIT: '200' } })
  ;({ alice } = await api.people('alice'))
})
afterAll(() => api.close())

describe('reason', () => {
  it.each([
    ['no token', { path: '/user' }, 401, 'token_missing'],
    ['an unknown token', { path: '/user', token: 'f'.repeat(64) }, 401, 'token_invalid'],
    ['an unknown path', { path: '/nonsense' }, 404, 'not_found'],
    ['a wrong method', { method: 'DELETE', path: '/user' }, 404, 'not_found'],
    ['an address that is too long', { path: `/user?a=${'a'.repeat(9_000)}` }, 414, 'url_too_long'],
  ] as const)('the error of %s has a reason', async (_what, request, status, reason) => {
    const { body } = await api.call(request)

    expect(body).toMatchObject({ code: status, message: expect.any(String), reason })
  })

  it.each([
    ['malformed JSON', { body: '{' }, 400, 'malformed_body'],
    [
      'an unsupported media type',
      { body: 'x', headers: { 'content-type': 'text/plain' } },
      415,
      'unsupported_media_type',
    ],
    ['a compressed body', { body: '{}', headers: { 'content-encoding': 'gzip' } }, 415, 'unsupported_media_type'],
    ['a body that is too large', { body: `"${'a'.repeat(2 ** 21)}"` }, 413, 'body_too_large'],
    [
      'a bad Idempotency-Key',
      { body: '{"public":true}', headers: { 'idempotency-key': 'two words' } },
      400,
      'idempotency_key_invalid',
    ],
  ] as const)('the error of %s has a reason', async (_what, request, status, reason) => {
    const { token } = alice
    const headers = { 'content-type': 'application/json', ...('headers' in request && request.headers) }
    const answer = await api.call({ method: 'POST', path: '/posts', token, body: request.body, headers })

    expect(answer.body).toMatchObject({ code: status, message: expect.any(String), reason })
  })

  it('a missing scope has no field in the error', async () => {
    const { body } = await (await alice.with()).get('/user')

    expect(body).toEqual({
      code: 403,
      message: 'insufficient_scope: this call needs profile.',
      reason: 'insufficient_scope',
    })
  })

  it('a request that no route handles has a reason', async () => {
    await using web = await startApiPod()
    const address = await web.app.listen({ port: 0, host: '127.0.0.1' })
    const socket = connect(Number(new URL(address).port), '127.0.0.1')
    socket.write('NONSENSE\r\n\r\n')

    const answer = await text(socket)
    expect(JSON.parse(answer.slice(answer.indexOf('{')))).toEqual({
      code: 400,
      message: 'Bad Request.',
      reason: 'malformed_request',
    })
  })

  it('too many requests have a reason', async () => {
    await using web = await startApiPod({ environment: { WRITE_LIMIT: '1' } })
    const { bob } = await web.people('bob')
    await bob.post('/posts', { body: 'One', public: true })

    const { body } = await bob.post('/posts', { body: 'Two', public: true })
    expect(body).toMatchObject({ code: 429, reason: 'rate_limited', error: 'slow_down' })
  })

  it('is not a part of the errors of OpenID Connect', async () => {
    const answer = await api.app.inject({ method: 'POST', url: '/api/openid_connect/clients', payload: {} })

    expect(answer.statusCode).toBe(400)
    expect(Object.keys(answer.json()).sort()).toEqual(['error', 'error_description'])
  })
})

describe('field', () => {
  it.each([
    ['/posts', {}, 'field_missing', 'public'],
    ['/posts', { public: 'perhaps', body: 'x' }, 'field_invalid', 'public'],
    ['/posts', { public: true }, 'text_required', 'body'],
    ['/posts', { public: true, body: 'x\u0000' }, 'field_invalid', 'body'],
    ['/posts', { public: true, poll: { question: 'Tea?' } }, 'field_missing', 'poll.poll_answers'],
    ['/posts', { public: false, body: 'x', aspects: [] }, 'aspects_required', 'aspects'],
    ['/conversations', { subject: 's', body: 'b', recipients: [] }, 'recipients_invalid', 'recipients'],
    ['/tag_followings', { name: '!!!' }, 'tag_invalid', 'name'],
    ['/aspects', { name: 'a'.repeat(21) }, 'name_invalid', 'name'],
  ])('the error of POST %s with %j has a reason and a field', async (path, body, reason, field) => {
    const answer = await alice.post(path, body)

    expect(answer.body).toEqual({ code: 422, message: expect.any(String), reason, field })
  })

  it.each([
    ['/photos?before=yesterday', 'before'],
    ['/photos?per_page=many', 'per_page'],
    ['/streams/aspects?aspect_ids=x', 'aspect_ids'],
    ['/search/users?name_or_handle=al&filter=friends', 'filter'],
    ['/search/posts?tag=!!!', 'tag'],
  ])('the error of GET %s has a field', async (path, field) => {
    const { body } = await alice.get(path)

    expect(body).toMatchObject({ code: 422, reason: expect.stringMatching(/_invalid$/), field })
  })

  it('is a list where several are wrong, with the message about the first', async () => {
    const { body } = await alice.post('/conversations', { subject: 3, recipients: 'bob' })

    expect(body).toEqual({
      code: 422,
      message: "The body must have required property 'body'.",
      reason: 'field_missing',
      field: 'body',
      fields: ['body', 'subject', 'recipients'],
    })
  })

  it('the field of an error about a person who cannot be added is the person', async () => {
    const friends = await aspectOf(api, alice, 'Friends')
    const { body } = await alice.post(`/aspects/${friends}/contacts`, { person_guid: alice.guid })

    expect(body).toMatchObject({ code: 422, reason: 'own_person', field: 'person_guid' })
  })
})

it('a reason is one of a closed set, each of which some operation or the introduction documents', async () => {
  const document = JSON.stringify(await describeApi())

  for (const reason of Object.keys(ERROR_REASONS)) expect(document).toContain(`\`${reason}\``)
})
