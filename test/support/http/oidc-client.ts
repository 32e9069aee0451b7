import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { newAddress, openBrowser, type TestBrowser } from '../browser/scriptless-browser.js'

export const CALLBACK = 'https://client.example/callback'
export const POD = 'https://pod.example'

type InjectResponse = Awaited<ReturnType<FastifyInstance['inject']>>

/** A registered client app, with the registration response. */
export interface TestOidcClient {
  readonly id: string
  readonly secret: string | undefined
  readonly redirectUri: string
  /** The URL of an authorization request, by default without PKCE. */
  address(parameters?: Readonly<Record<string, string | undefined>>): string
  token(fields: Readonly<Record<string, string>>): Promise<InjectResponse>
}

export async function registerTestClient(
  app: FastifyInstance,
  metadata: Readonly<Record<string, unknown>> = {},
): Promise<TestOidcClient> {
  const response = await register(app, metadata)
  if (response.statusCode !== 201) throw new Error(`The client was not registered: ${response.body}`)
  const { client_id: id, client_secret: secret, redirect_uris: uris } = response.json()
  return {
    id,
    secret,
    redirectUri: uris[0],
    address: (parameters = {}) => {
      const all = {
        client_id: id,
        redirect_uri: uris[0],
        response_type: 'code',
        scope: 'openid',
        state: 'xyz',
        ...parameters,
      }
      const given = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined)
      return `/api/openid_connect/authorizations/new?${new URLSearchParams(given)}`
    },
    token: (fields) =>
      postForm(app, '/api/openid_connect/access_tokens', {
        client_id: id,
        ...(secret !== undefined && { client_secret: secret }),
        ...fields,
      }),
  }
}

export function register(app: FastifyInstance, metadata: Readonly<Record<string, unknown>>) {
  return app.inject({
    method: 'POST',
    url: '/api/openid_connect/clients',
    remoteAddress: newAddress(),
    payload: { redirect_uris: [CALLBACK], client_name: 'A test client', ...metadata },
  })
}

export async function postForm(
  app: FastifyInstance,
  url: string,
  fields: Readonly<Record<string, string>>,
  headers = {},
): Promise<InjectResponse> {
  return app.inject({
    method: 'POST',
    url,
    remoteAddress: newAddress(),
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    payload: new URLSearchParams(fields).toString(),
  })
}

interface AuthorizationOptions {
  /** Parameters of the authorization request. */
  readonly parameters?: Readonly<Record<string, string | undefined>>
  readonly browser?: TestBrowser
}

/** Signs in and consents, in a new browser by default; returns the redirect to the client. */
export async function approveClient(
  app: FastifyInstance,
  client: TestOidcClient,
  username: string,
  { parameters = {}, browser = openBrowser(app, POD) }: AuthorizationOptions = {},
): Promise<URL> {
  await browser.visit(client.address(parameters))
  if (browser.url.pathname === '/users/sign_in') {
    await browser.submit({ username, password: `the password of ${username}` })
  }
  if (browser.url.pathname === '/api/openid_connect/authorizations') await browser.submit({ approve: 'true' })
  return browser.url
}

export function codeIn(url: URL): string {
  const code = url.searchParams.get('code')
  if (code === null) throw new Error(`There is no code in ${url.href}.`)
  return code
}

export function pkce() {
  const verifier = randomBytes(32).toString('base64url')
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  return { verifier, parameters: { code_challenge: challenge, code_challenge_method: 'S256' } }
}
