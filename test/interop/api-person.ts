import type { CompletePod } from '../support/processes/complete-pod.js'

const SCOPES =
  'openid profile profile:modify contacts:read contacts:modify conversations interactions notifications public:read public:modify private:read private:modify tags:read'

/** An account of a pod with an API client that has a token. */
export interface ApiPerson {
  readonly pod: CompletePod
  readonly address: string
  readonly guid: string
  /** The id of the first aspect. */
  readonly aspect: number
  get<Body>(path: string): Promise<Body>
  send<Body>(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: object): Promise<Body>
}

export async function openApiPerson(pod: CompletePod, username: string): Promise<ApiPerson> {
  const { address, guid } = await pod.addUser(username)
  const token = (await pod.json('token', username, '--scopes', SCOPES)) as { readonly access_token: string }

  async function request<Body>(method: string, path: string, body?: object): Promise<Body> {
    const response = await fetch(`http://${pod.host}/api/v1/${path}`, {
      method,
      headers: {
        Authorization: `Bearer ${token.access_token}`,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as Body
  }

  const [first] = await request<readonly { readonly id: number }[]>('GET', 'aspects')
  if (first === undefined) throw new Error('The new account has no aspect.')
  return {
    pod,
    address,
    guid,
    aspect: first.id,
    get: (path) => request('GET', path),
    send: (method, path, body) => request(method, path, body),
  }
}

/** Adds a person to the first aspect. */
export function shareWith(who: ApiPerson, guid: string): Promise<void> {
  return who.send('POST', `aspects/${who.aspect}/contacts`, { person_guid: guid })
}
