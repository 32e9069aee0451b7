import type { Dispatcher } from 'undici'
import type { RemoteLimits } from '../../limits.js'
import type { DeliveryAnswer, RemoteAnswer } from '../../pod/pod.js'
import { readBody } from './read-body.js'

type Response = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>
type Limits = Pick<RemoteLimits, 'unreadBytes' | 'unreadMs' | 'retryAfterSeconds'>

const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** Reads the body of a good answer; of a redirect only where it points to. */
export async function readAnswer(
  url: URL,
  response: Response,
  limits: Limits & { readonly maxBytes: number },
): Promise<RemoteAnswer | { readonly location: string }> {
  const { statusCode: status, body } = response
  const contentType = header(response, 'content-type')
  if (status >= 200 && status < 300) {
    const encoding = (header(response, 'content-encoding') ?? '').trim().toLowerCase()
    return { status, url, contentType, body: await readBody(body, encoding, limits.maxBytes) }
  }
  await drop(body, limits)
  const location = header(response, 'location')
  if (redirectStatuses.has(status) && location !== undefined) return { location }
  return { status, url, contentType, body: Buffer.alloc(0) }
}

/** Once there is a status the delivery has had its answer, whatever becomes of the body. */
export async function readDeliveryAnswer(response: Response, limits: Limits): Promise<DeliveryAnswer> {
  await drop(response.body, limits)
  const retryAfter = secondsOf(header(response, 'retry-after'))
  return {
    status: response.statusCode,
    retryAfter: retryAfter === undefined ? undefined : Math.min(retryAfter, limits.retryAfterSeconds),
  }
}

/** Reads a little, so that the connection can be used again; a long body or a slow one is closed. */
async function drop(body: Response['body'], limits: Limits): Promise<void> {
  await body.dump({ limit: limits.unreadBytes, signal: AbortSignal.timeout(limits.unreadMs) }).catch(() => {})
}

/** A field that comes twice is joined, so that it fits nothing instead of two things. */
function header(response: Response, name: string): string | undefined {
  const value = response.headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

/** A number of seconds, or a date as HTTP writes it. */
function secondsOf(retryAfter: string | undefined): number | undefined {
  if (retryAfter === undefined) return undefined
  if (/^[0-9]{1,9}$/.test(retryAfter)) return Number(retryAfter)
  const time = /^[A-Z][a-z]{2}, .+ GMT$/.test(retryAfter) ? Date.parse(retryAfter) : Number.NaN
  return Number.isNaN(time) ? undefined : Math.max(0, Math.ceil((time - Date.now()) / 1000))
}
