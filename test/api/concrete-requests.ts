import { formOf } from '../support/pods/photo-pod.js'
import type { ApiCall, GeneratedRequest } from './generated-requests.js'
import { LONE_SURROGATE } from './hostile-values.js'
import { Known, type PoolName } from './known-values.js'

/** What there is; things in one place belong together: a post, a comment under it, an answer of its poll … */
export type Pools = Readonly<Record<PoolName, (string | number)[]>>

const MAX_URL_CHARACTERS = 8_000

/** A generated request with everything known in its place. */
export function callOf(request: GeneratedRequest, pools: Pools): ApiCall {
  const { method, path, query } = request
  const token = tokenOf(request, pools)
  const parameters = query.map(([name, value]) => `${encode(name)}=${encode(valueIn(request, pools, value))}`)
  if (request.token === 'in the query' || request.token === 'twice') parameters.push(`access_token=${pools.tokens[0]}`)
  const place = path.map((part) => ('text' in part ? part.text : encode(valueIn(request, pools, part.value)))).join('')
  // A longer address is refused before anybody looks where it leads, which has a test of its own.
  while (`${place}?${parameters.join('&')}`.length > MAX_URL_CHARACTERS) parameters.pop()
  return {
    method,
    path: parameters.length === 0 ? place : `${place}?${parameters.join('&')}`,
    ...(token !== undefined && { token }),
    ...bodyOf(request, pools),
  }
}

function tokenOf(request: GeneratedRequest, pools: Pools): string | undefined {
  switch (request.token) {
    case 'none':
    case 'in the query':
      return undefined
    case 'unknown':
      return 'f'.repeat(64)
    case 'twice':
      return String(pools.tokens[0])
    default:
      return String(valueIn(request, pools, request.token))
  }
}

function bodyOf(request: GeneratedRequest, pools: Pools): Partial<Pick<ApiCall, 'body' | 'headers'>> {
  const { body, headers } = request
  switch (body.form) {
    case 'none':
      return { headers }
    case 'text':
      return { body: body.text, headers: { 'content-type': 'application/json', ...headers } }
    case 'JSON':
      return {
        body: JSON.stringify(valueIn(request, pools, body.value) ?? null),
        headers: { 'content-type': 'application/json', ...headers },
      }
    case 'fields':
      return {
        body: fieldsOf(valueIn(request, pools, body.value)).join('&'),
        headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      }
    case 'upload': {
      const fields = partsOf(valueIn(request, pools, body.value))
      const { body: bytes, type } = formOf([...fields, { name: body.file, value: body.bytes, fileName: 'x' }])
      return { body: bytes, headers: { 'content-type': type, ...headers } }
    }
  }
}

function fieldsOf(value: unknown): readonly string[] {
  return partsOf(value).map((part) => `${encode(part.name)}=${encode(part.value)}`)
}

/** Form encoding: field names carry the nesting. */
function partsOf(value: unknown, name = ''): readonly { readonly name: string; readonly value: string }[] {
  if (typeof value !== 'object' || value === null) return [{ name, value: String(value) }]
  if (Array.isArray(value)) return value.flatMap((inside) => partsOf(inside, `${name}[]`))
  return Object.entries(value).flatMap(([key, inside]) => partsOf(inside, name === '' ? key : `${name}[${key}]`))
}

/** With everything known in its place. */
function valueIn(request: GeneratedRequest, pools: Pools, value: unknown): unknown {
  if (value instanceof Known) {
    const pool = pools[value.pool]
    return pool[(value.place ?? request.place) % pool.length]
  }
  if (Array.isArray(value)) return value.map((inside) => valueIn(request, pools, inside))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inside]) => [name, valueIn(request, pools, inside)]))
}

function encode(value: unknown): string {
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return LONE_SURROGATE.test(text) ? '%ED%A0%80' : encodeURIComponent(text)
}
