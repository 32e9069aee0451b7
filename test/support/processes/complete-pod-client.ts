import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import { type ApiDocument, readApiDocument } from '../http/openapi-check.js'
import type { ApiResponse } from '../pods/api-pod.js'
import type { CompletePodUser } from './complete-pod.js'

type StatusAndBody = Pick<ApiResponse, 'status' | 'body'>

/** An HTTP client of a local user, with a token that has all scopes. */
export interface HttpClient {
  get(path: string): Promise<StatusAndBody>
  post(path: string, body?: object): Promise<StatusAndBody>
  delete(path: string): Promise<StatusAndBody>
  /** A file of the form field `image`. */
  upload(path: string, file: Buffer): Promise<StatusAndBody>
}

/** Returns a client. A request throws if the OpenAPI document does not allow the response. */
export async function httpClientOf({ pod, address }: CompletePodUser): Promise<HttpClient> {
  const documentation = await readApiDocument()
  const [username = ''] = address.split('@')
  const created = await pod.json('token', username, '--scopes', SCOPES.join(' '))
  const authorization = `Bearer ${Reflect.get(Object(created), 'access_token')}`

  async function send(
    method: string,
    path: string,
    init: Pick<RequestInit, 'body' | 'headers'> = {},
  ): Promise<StatusAndBody> {
    const url = new URL(`/api/v1${path}`, `http://${pod.host}`)
    const response = await fetch(url, { method, ...init, headers: { authorization, ...init.headers } })
    const text = await response.text()
    checkResponse(documentation, { method, path: url.pathname }, response, text)
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  return {
    get: (path) => send('GET', path),
    post: (path, body) =>
      send('POST', path, body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    delete: (path) => send('DELETE', path),
    upload(path, file) {
      const form = new FormData()
      form.set('image', new Blob([new Uint8Array(file)], { type: 'application/octet-stream' }), 'picture')
      return send('POST', path, { body: form })
    },
  }
}

function checkResponse(
  documentation: ApiDocument,
  { method, path }: { readonly method: string; readonly path: string },
  response: Response,
  body: string,
): void {
  documentation.check(method, path, {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body,
    json: () => JSON.parse(body),
  })
}
