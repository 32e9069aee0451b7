import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import { type ApiDocument, readApiDocument } from '../http/openapi-check.js'
import type { ApiAnswer } from '../pods/api-pod.js'
import type { CompletePodUser } from './complete-pod.js'

type Answer = Pick<ApiAnswer, 'status' | 'body'>

/** The app of a local user: a token with all scopes, and HTTP only. */
export interface HttpClient {
  get(path: string): Promise<Answer>
  post(path: string, body?: object): Promise<Answer>
  delete(path: string): Promise<Answer>
  /** A file of the form field `image`. */
  upload(path: string, file: Buffer): Promise<Answer>
}

/** A call throws if the OpenAPI document does not allow the response. */
export async function httpClientOf({ pod, address }: CompletePodUser): Promise<HttpClient> {
  const documentation = await readApiDocument()
  const [username = ''] = address.split('@')
  const made = await pod.json('token', username, '--scopes', SCOPES.join(' '))
  const authorization = `Bearer ${Reflect.get(Object(made), 'access_token')}`

  async function send(method: string, path: string, init: Pick<RequestInit, 'body' | 'headers'> = {}): Promise<Answer> {
    const url = new URL(`/api/v1${path}`, `http://${pod.host}`)
    const response = await fetch(url, { method, ...init, headers: { authorization, ...init.headers } })
    const text = await response.text()
    check(documentation, method, url, response, text)
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

function check(documentation: ApiDocument, method: string, url: URL, response: Response, body: string): void {
  documentation.check(method, url.pathname, {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body,
    json: () => JSON.parse(body),
  })
}
