import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { UserWithToken } from './mixed-load-pod.js'

/** Results of the requests of all clients so far. */
export interface Requests {
  succeeded: number
  /** Retries after 503 with Retry-After, which an overloaded pod sends. */
  retried: number
  readonly failed: string[]
  readonly milliseconds: number[]
}

export function noRequests(): Requests {
  return { succeeded: 0, retried: 0, failed: [], milliseconds: [] }
}

/** A client that retries after 503 with the same idempotency key. */
export interface PersistentClient {
  readonly user: UserWithToken
  get(path: string): Promise<unknown>
  /** Undefined: the request failed. */
  post(path: string, body: object): Promise<unknown>
}

const MAX_ATTEMPTS = 20
const TIMEOUT_MS = 60_000
const RETRY_INTERVAL_MS = 500

export function openClient(base: string, user: UserWithToken, requests: Requests): PersistentClient {
  async function send(path: string, method: 'GET' | 'POST', body?: object): Promise<unknown> {
    const key = method === 'POST' ? { 'idempotency-key': randomUUID() } : {}
    const isForm = body instanceof FormData
    const type = body === undefined || isForm ? {} : { 'content-type': 'application/json' }
    const request: RequestInit = {
      method,
      headers: { authorization: `Bearer ${user.token}`, ...key, ...type },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    }
    for (let attempt = 1; ; attempt += 1) {
      const began = performance.now()
      const { status, text } = await fetchText(`${base}/api/v1${path}`, request)
      if (status >= 200 && status < 300) {
        requests.succeeded += 1
        requests.milliseconds.push(performance.now() - began)
        return text === '' ? null : JSON.parse(text)
      }
      if ((status !== 503 && status !== 409) || attempt === MAX_ATTEMPTS) {
        requests.failed.push(`${method} ${path} of ${user.username}: ${status} ${text.slice(0, 200)}`)
        return undefined
      }
      requests.retried += 1
      await pause(RETRY_INTERVAL_MS)
    }
  }
  return { user, get: (path) => send(path, 'GET'), post: (path, body) => send(path, 'POST', body) }
}

/** Status and body of the response. Status 0: no response. */
async function fetchText(
  url: string,
  request: RequestInit,
): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(TIMEOUT_MS) })
    return { status: response.status, text: await response.text() }
  } catch (error) {
    return { status: 0, text: String(error) }
  }
}

/** The field of a response with this name. */
export function fieldOf(response: unknown, name: string): string | undefined {
  const value = typeof response === 'object' && response !== null ? Reflect.get(response, name) : undefined
  return typeof value === 'string' ? value : undefined
}
