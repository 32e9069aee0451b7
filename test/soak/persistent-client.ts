import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { UserWithToken } from './mixed-load-pod.js'

/** Results of the requests of all clients so far. */
export interface Requests {
  answered: number
  /** An overloaded pod answers 503 with Retry-After, and clients retry. */
  askedAgain: number
  readonly failed: string[]
  readonly milliseconds: number[]
}

export function noRequests(): Requests {
  return { answered: 0, askedAgain: 0, failed: [], milliseconds: [] }
}

/** A client that retries after 503 with the same idempotency key. */
export interface PersistentClient {
  readonly who: UserWithToken
  get(path: string): Promise<unknown>
  /** Undefined: the request failed. */
  post(path: string, body: object): Promise<unknown>
}

const TRIES = 20
const LATEST_MS = 60_000
const AGAIN_AFTER_MS = 500

export function openClient(base: string, who: UserWithToken, requests: Requests): PersistentClient {
  async function send(path: string, method: 'GET' | 'POST', body?: object): Promise<unknown> {
    const key = method === 'POST' ? { 'idempotency-key': randomUUID() } : {}
    const isForm = body instanceof FormData
    const type = body === undefined || isForm ? {} : { 'content-type': 'application/json' }
    const request: RequestInit = {
      method,
      headers: { authorization: `Bearer ${who.token}`, ...key, ...type },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    }
    for (let attempt = 1; ; attempt += 1) {
      const began = performance.now()
      const { status, text } = await ask(`${base}/api/v1${path}`, request)
      if (status >= 200 && status < 300) {
        requests.answered += 1
        requests.milliseconds.push(performance.now() - began)
        return text === '' ? null : JSON.parse(text)
      }
      if ((status !== 503 && status !== 409) || attempt === TRIES) {
        requests.failed.push(`${method} ${path} of ${who.username}: ${status} ${text.slice(0, 200)}`)
        return undefined
      }
      requests.askedAgain += 1
      await pause(AGAIN_AFTER_MS)
    }
  }
  return { who, get: (path) => send(path, 'GET'), post: (path, body) => send(path, 'POST', body) }
}

/** Status zero: no response. */
async function ask(url: string, request: RequestInit): Promise<{ readonly status: number; readonly text: string }> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(LATEST_MS) })
    return { status: response.status, text: await response.text() }
  } catch (error) {
    return { status: 0, text: String(error) }
  }
}

/** The field of a response with this name. */
export function fieldOf(answer: unknown, name: string): string | undefined {
  const value = typeof answer === 'object' && answer !== null ? Reflect.get(answer, name) : undefined
  return typeof value === 'string' ? value : undefined
}
