import type { Dispatcher } from 'undici'
import type { DeliveryResponse, RemoteResponse } from '../../services/remote-pod-client.js'
import type { RemoteLimits } from './limits.js'
import { readBody } from './read-body.js'

type Response = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>
type Limits = Pick<RemoteLimits, 'unreadBytes' | 'unreadMs' | 'retryAfterSeconds'>

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Reads the body of a 2xx response, or the location of a redirect. */
export async function readResponse(
  url: URL,
  response: Response,
  limits: Limits & { readonly maxBytes: number },
): Promise<RemoteResponse | { readonly location: string }> {
  const { statusCode: status, body } = response
  const contentType = header(response, 'content-type')
  if (status >= 200 && status < 300) {
    const encoding = (header(response, 'content-encoding') ?? '').trim().toLowerCase()
    return { status, url, contentType, body: await readBody(body, encoding, limits.maxBytes) }
  }
  await discardBody(body, limits)
  const location = header(response, 'location')
  if (REDIRECT_STATUSES.has(status) && location !== undefined) return { location }
  return { status, url, contentType, body: Buffer.alloc(0) }
}

/** Reads the status of a delivery; an error in the body after it does not count. */
export async function readDeliveryResponse(response: Response, limits: Limits): Promise<DeliveryResponse> {
  await discardBody(response.body, limits)
  const retryAfter = secondsOf(header(response, 'retry-after'))
  return {
    status: response.statusCode,
    retryAfter: retryAfter === undefined ? undefined : Math.min(retryAfter, limits.retryAfterSeconds),
  }
}

/** Reads a short body to its end, so that the connection can be reused. A long or slow body closes the connection. */
async function discardBody(body: Response['body'], limits: Limits): Promise<void> {
  await body.dump({ limit: limits.unreadBytes, signal: AbortSignal.timeout(limits.unreadMs) }).catch(() => {})
}

/** Joins repeated fields, so that a field with two values matches neither of them. */
function header(response: Response, name: string): string | undefined {
  const value = response.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** Reads a number of seconds or an HTTP date. */
function secondsOf(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined
  if (/^[0-9]{1,9}$/.test(retryAfter)) return Number(retryAfter)
  const time = /^[A-Z][a-z]{2}, .+ GMT$/.test(retryAfter) ? Date.parse(retryAfter) : Number.NaN
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}
