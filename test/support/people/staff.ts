import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { changeRole } from '../../../src/domain/moderation/change-role.js'
import type { ApiPerson, ApiPod, ApiResponse } from '../pods/api-pod.js'

/** A moderator or admin with a token for the admin API. Paths are below `/api/admin/v1`. */
export interface StaffClient {
  readonly token: string
  readonly person: ApiPerson
  get(path: string): Promise<ApiResponse>
  post(path: string, body?: object): Promise<ApiResponse>
  put(path: string, body?: object): Promise<ApiResponse>
  call(method: 'PATCH' | 'DELETE', path: string, body?: object): Promise<ApiResponse>
}

export async function makeStaff(api: ApiPod, name: string, role: 'moderator' | 'admin'): Promise<StaffClient> {
  const person = (await api.people(name))[name]
  if (person === undefined) throw new Error(`${name} was not created.`)
  await changeRole(api.pod, COMMAND_ACTOR, person.guid, { role, reason: 'For a test', confirm: name })
  const scopes = [role === 'admin' ? 'administration' : 'moderation'] as const
  const { accessToken: token } = await mintToken(api.pod, name, { scopes, lifetime: 3_600 })
  const send = (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE') => (path: string, body?: object) =>
    api.call({ method, path: adminPath(path), token, ...(body !== undefined && { body }) })
  return {
    token,
    person,
    get: send('GET'),
    post: send('POST'),
    put: send('PUT'),
    call: (method, path, body) => send(method)(path, body),
  }
}

function adminPath(path: string): string {
  return path.startsWith('https://') ? path : `/api/admin/v1${path}`
}
