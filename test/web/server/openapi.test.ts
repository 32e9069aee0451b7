import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { describeApi } from '../../../src/web/openapi/document.js'
import { buildPod } from '../../support/pods/build-pod.js'

it('the API description in the repository is that of the routes (npm run openapi writes it)', async () => {
  const written = await readFile(new URL('../../../docs/openapi.json', import.meta.url), 'utf8')

  expect(JSON.parse(written)).toEqual(await describeApi())
})

it('matches the document that the pod serves', async () => {
  await using pod = await buildPod()

  const response = await pod.inject('/api/docs/json')

  expect(response.statusCode).toBe(200)
  expect(response.json()).toEqual(await describeApi())
})

it('the page of the API description has neither a logo nor a field to load other documents', async () => {
  await using pod = await buildPod()

  const page = await pod.inject('/api/docs')
  const script = await pod.inject('/api/docs/static/swagger-initializer.js')

  expect(page.statusCode).toBe(200)
  expect(page.headers['content-security-policy']).toContain("connect-src 'self'")
  expect(script.body).toContain('"layout":"BaseLayout"')
})

it('the API description is OpenAPI 3.1, and describes each call with its scopes', async () => {
  const document = (await describeApi()) as Description // made of nothing but this

  expect(document.openapi).toMatch(/^3\.1\./)
  expect(document.components.securitySchemes['token']).toMatchObject({ type: 'http', scheme: 'bearer' })
  const calls = Object.values(document.paths).flatMap((path) => Object.values(path))
  expect(calls.length).toBeGreaterThan(0)
  const tags = document.tags.map(({ name }) => name)
  for (const call of calls) {
    expect(call).toMatchObject({
      operationId: expect.any(String),
      summary: expect.any(String),
      description: expect.any(String),
      security: [{ token: expect.any(Array) }, { openid: expect.any(Array) }],
      responses: expect.objectContaining({
        401: expect.anything(),
        403: expect.anything(),
        default: expect.anything(),
      }),
    })
    for (const tag of call.tags) expect(tags).toContain(tag)
  }
  const ids = calls.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
})

it('the API description names the OpenID Connect discovery, the headers of responses and the types of live events', async () => {
  const { components, paths } = (await describeApi()) as Description // made of nothing but this

  expect(components.securitySchemes['openid']).toMatchObject({
    type: 'openIdConnect',
    openIdConnectUrl: '/.well-known/openid-configuration',
  })
  const list = paths['/api/v1/streams/main']?.['get']?.responses['200']
  expect(Object.keys(list?.headers ?? {})).toEqual(expect.arrayContaining(['Link', 'ETag']))
  const limited = paths['/api/v1/posts']?.['post']?.responses['429']
  expect(Object.keys(limited?.headers ?? {})).toContain('Retry-After')
  const notifications = paths['/api/v1/notifications']?.['get']?.responses['200']
  expect(Object.keys(notifications?.headers ?? {})).toContain('Unread-Notifications')
  const events = paths['/api/v1/streaming']?.['get']?.responses['200']
  expect(events?.content).toHaveProperty(
    ['text/event-stream', 'schema', '$ref'],
    '#/components/schemas/StreamEventData',
  )
})

it('the API description names If-Match for each call that may be refused with 412, and for no other', async () => {
  const { paths } = (await describeApi()) as Description // made of nothing but this

  const calls = Object.values(paths).flatMap((path) => Object.values(path))
  const conditional = calls.filter(({ responses }) => responses['412'] !== undefined)
  const named = calls.filter(({ parameters = [] }) => parameters.filter(({ name }) => name === 'If-Match').length === 1)
  expect(conditional.length).toBeGreaterThan(30)
  expect(named).toEqual(conditional)
})

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string }[]
  readonly tags: readonly string[]
  readonly responses: Readonly<Record<string, { readonly headers?: object; readonly content?: object }>>
}

interface Description {
  readonly openapi: string
  readonly tags: readonly { readonly name: string }[]
  readonly components: { readonly securitySchemes: Readonly<Record<string, object>> }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}
