import type { FastifyInstance, InjectOptions } from 'fastify'
import { expect } from 'vitest'
import { ALWAYS_GRANTED, SCOPES, type Scope } from '../../../src/domain/accounts/scopes.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import type { OpenServices } from '../../../src/services/open-services.js'
import { type ApiDocument, type Response, readApiDocument } from '../http/openapi-check.js'
import { byName } from '../people/by-name.js'
import type { TestPerson } from '../people/local-users.js'
import { viewerOf } from '../people/local-users.js'
import { buildPod, type PodOptions } from './build-pod.js'

const TOKEN_LIFETIME_SECONDS = 3_600
const BASE = '/api/v1'

/** A pod and clients of its API. A call throws if the OpenAPI document does not allow the response. */
export interface ApiPod extends AsyncDisposable {
  readonly pod: OpenServices
  readonly app: FastifyInstance
  /** Creates the people, once and in this order; a second call returns the same people. */
  people<Name extends string>(...names: Name[]): Promise<Record<Name, ApiPerson>>
  call(request: ApiCall): Promise<ApiResponse>
  close(): Promise<void>
}

export interface ApiCall {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below `/api/v1`; a path that begins with `/api/`, or a link of a response, is used unchanged. */
  readonly path: string
  readonly token?: string
  /** An object is sent as JSON, a text as it is. */
  readonly body?: object | string
  readonly headers?: Readonly<Record<string, string>>
}

/** Any property, because the tests read many response types. */
type Json = ReturnType<typeof readJson>

function readJson(response: Response) {
  const isJson = String(response.headers['content-type']).startsWith('application/json')
  return isJson ? response.json() : response.body
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Response['headers']
  /** The parsed JSON; undefined without a body. */
  readonly body: Json
  readonly text: string
  readonly links: { readonly next?: string; readonly previous?: string }
}

/** A client app that sends its token in the header. */
export interface ApiClient {
  readonly token: string
  get(path: string): Promise<ApiResponse>
  post(path: string, body?: ApiCall['body']): Promise<ApiResponse>
  put(path: string, body?: ApiCall['body']): Promise<ApiResponse>
  patch(path: string, body?: ApiCall['body']): Promise<ApiResponse>
  delete(path: string): Promise<ApiResponse>
}

/** A local user with a client that has all scopes. */
export interface ApiPerson extends ApiClient {
  readonly guid: string
  readonly address: string
  /** The viewer, for functions of the domain. */
  readonly viewer: Viewer
  /** Another client of the user, with these scopes and those of every client. Equal scopes return the same client. */
  with(...scopes: Scope[]): Promise<ApiClient>
  readonly editProfile: TestPerson['editProfile']
}

export async function startApiPod(options: PodOptions = {}): Promise<ApiPod> {
  const documentation = await readApiDocument()
  const testPod = await buildPod(options)
  const { pod, app } = testPod
  const call = (request: ApiCall) => send(app, documentation, request)
  const known = new Map<string, ApiPerson>()

  async function person(name: string): Promise<ApiPerson> {
    const created = known.get(name) ?? (await makeApiPerson(pod, call, name, (await testPod.people(name))[name]))
    known.set(name, created)
    return created
  }

  return {
    pod,
    app,
    call,
    people: (...names) => byName(names, person),
    close: testPod.close,
    [Symbol.asyncDispose]: testPod.close,
  }
}

/** Expects this status, and an error body that contains it. */
export function expectError(response: ApiResponse, status: number): void {
  expect([response.status, response.body]).toEqual([
    status,
    expect.objectContaining({ code: status, message: expect.any(String) }),
  ])
}

/** All items of a list, page after page, in the direction of `next`. */
export async function readAllPages(client: ApiClient, path: string): Promise<Json[]> {
  const items: Json[] = []
  const seen = new Set<string>()
  for (let next: string | undefined = path; next !== undefined; ) {
    const response: ApiResponse = await client.get(next)
    expect(response.status).toBe(200)
    if (seen.has(next)) throw new Error(`${next} leads to an earlier page.`)
    seen.add(next)
    if (response.body.length === 0) throw new Error(`${next} leads to an empty page.`)
    items.push(...response.body)
    next = response.links.next
  }
  return items
}

async function makeApiPerson(
  pod: OpenServices,
  call: ApiPod['call'],
  name: string,
  user: TestPerson | undefined,
): Promise<ApiPerson> {
  if (user === undefined) throw new Error(`${name} was not created.`)
  const clients = new Map<string, Promise<ApiClient>>()

  async function mint(scopes: readonly Scope[]): Promise<ApiClient> {
    const { accessToken } = await mintToken(pod, name, { scopes, lifetime: TOKEN_LIFETIME_SECONDS })
    return clientOf(call, accessToken)
  }
  function clientWith(scopes: readonly Scope[]): Promise<ApiClient> {
    const key = [...scopes].sort().join(' ')
    const client = clients.get(key) ?? mint(scopes)
    clients.set(key, client)
    return client
  }

  return {
    ...(await clientWith(SCOPES)),
    guid: user.account.guid,
    address: user.account.address,
    viewer: await viewerOf(pod, user),
    with: (...scopes) => clientWith(['openid', ALWAYS_GRANTED, ...scopes]),
    editProfile: user.editProfile,
  }
}

function clientOf(call: ApiPod['call'], token: string): ApiClient {
  const send = (method: NonNullable<ApiCall['method']>) => (path: string, body?: ApiCall['body']) =>
    call({ method, path, token, ...(body !== undefined && { body }) })
  return {
    token,
    get: send('GET'),
    post: send('POST'),
    put: send('PUT'),
    patch: send('PATCH'),
    delete: send('DELETE'),
  }
}

async function send(
  app: FastifyInstance,
  documentation: ApiDocument,
  { method = 'GET', path, token, body, headers = {} }: ApiCall,
): Promise<ApiResponse> {
  const url = absolutePath(path)
  const response = await app.inject({
    method,
    url,
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
    ...(body !== undefined && { payload: body }),
  } as InjectOptions) // the type of the body does not allow the spread
  documentation.check(method, plainPath(url), response)
  return {
    status: response.statusCode,
    headers: response.headers,
    body: response.body === '' ? undefined : readJson(response),
    text: response.body,
    links: readLinks(response.headers.link),
  }
}

function absolutePath(path: string): string {
  if (path.startsWith('https://')) return path.slice(new URL(path).origin.length)
  return path.startsWith('/api/') ? path : `${BASE}${path}`
}

/** The path as the OpenAPI document has it. */
function plainPath(url: string): string {
  const [path = ''] = url.split('?')
  return path
    .replace(/\/{2,}/g, '/')
    .replace(/\/$/, '')
    .replace(/\.json$/, '')
}

/** Reads the links with the pattern of a known client. */
function readLinks(header: unknown): ApiResponse['links'] {
  const links = String(header ?? '').matchAll(/<([^>]+)>; rel="([^"]+)"/g)
  return Object.fromEntries(Array.from(links, ([, url, name]) => [name, url]))
}
