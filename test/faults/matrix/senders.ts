import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { LocalClient, PodUnderFaults } from './pod-under-faults.js'

/** The response to one request, or its absence. */
export interface TimedResponse {
  /** `none`: no response; `late`: no response within the time limit, and no error. */
  readonly status: number | 'none' | 'late'
  readonly milliseconds: number
  readonly retryAfter: string | null
  /** Time of the request. */
  readonly at: number
}

/** A response and its body. */
interface ResponseWithBody {
  readonly response: TimedResponse
  readonly body: string
}

/** The distinct statuses of the responses. */
export function statusesIn(responses: readonly TimedResponse[]): readonly TimedResponse['status'][] {
  return [...new Set(responses.map(({ status }) => status))]
}

/** Expects success of all requests, except for a few 503, which a busy machine causes. */
export function expectUnaffected(responses: readonly TimedResponse[]): void {
  const success: readonly unknown[] = [200, 202]
  const others = responses.filter(({ status }) => !success.includes(status))
  expect(others.filter(({ status }) => status !== 503)).toEqual([])
  expect(others.length).toBeLessThan(Math.max(2, responses.length / 10))
}

/** The response to an attempt to publish a post. */
export interface PublishedPost extends TimedResponse {
  readonly text: string
  /** The guid in the response. Without a response the post may exist or not. */
  readonly guid: string | undefined
}

/** Timeout of a request. The pod may wait three seconds for a connection and ten for a statement. */
const TIMEOUT_MS = 15_000

/** Attempts of a client with retries, at two processes in turn. A busy machine responds 503 for some time. */
const MAX_ATTEMPTS = 40
const RETRY_INTERVAL_MS = 100

let texts = 0

/** A request to the client API. */
export interface ApiCall {
  readonly method: string
  readonly path: string
  readonly content?: object | undefined
}

/** The request that publishes a public post. */
export function newPost(text: string): ApiCall {
  return { method: 'POST', path: '/posts', content: { public: true, body: text } }
}

export function postInbound(
  pod: PodUnderFaults,
  path: string,
  body: string,
  base = pod.nextBase(),
): Promise<TimedResponse> {
  return sendRequest(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/magic-envelope+xml' },
    body,
  }).then(({ response }) => response)
}

export async function publish(pod: PodUnderFaults, client: LocalClient, base = pod.nextBase()): Promise<PublishedPost> {
  const text = nextText()
  return toPublishedPost(text, await callApi(base, client, newPost(text)))
}

/** Publishes a post, and retries at the other process with the same idempotency key, as a proxy does. */
export async function publishWithRetries(pod: PodUnderFaults, client: LocalClient): Promise<PublishedPost> {
  const text = nextText()
  return toPublishedPost(text, await callWithRetries(pod, client, newPost(text)))
}

export async function callWithRetries(
  pod: PodUnderFaults,
  client: Pick<LocalClient, 'token'>,
  call: ApiCall,
  onResponse: (response: TimedResponse) => void = () => {},
): Promise<ResponseWithBody> {
  const headers = { 'idempotency-key': randomUUID() }
  for (let attempt = 1; ; attempt += 1) {
    const result = await callApi(pod.nextBase(), client, call, headers)
    onResponse(result.response)
    if (attempt === MAX_ATTEMPTS || (result.response.status !== 'none' && result.response.status !== 503)) return result
    await pause(RETRY_INTERVAL_MS)
  }
}

function nextText(): string {
  texts += 1
  return `Post ${texts} of a client`
}

function toPublishedPost(text: string, { response, body }: ResponseWithBody): PublishedPost {
  const guid = response.status === 200 || response.status === 201 ? guidIn(body) : undefined
  return { ...response, text, guid }
}

export function callApi(
  base: string,
  { token }: Pick<LocalClient, 'token'>,
  { method, path, content }: ApiCall,
  headers: Readonly<Record<string, string>> = {},
) {
  const type = content === undefined ? {} : { 'content-type': 'application/json' }
  return sendRequest(`${base}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...type, ...headers },
    ...(content !== undefined && { body: JSON.stringify(content) }),
  })
}

async function sendRequest(url: string, request: RequestInit): Promise<ResponseWithBody> {
  const at = Date.now()
  try {
    const fetched = await fetch(url, { ...request, signal: AbortSignal.timeout(TIMEOUT_MS) })
    const body = await fetched.text()
    const retryAfter = fetched.headers.get('retry-after')
    return { response: { status: fetched.status, milliseconds: Date.now() - at, retryAfter, at }, body }
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    const status = isLate ? 'late' : 'none'
    return { response: { status, milliseconds: Date.now() - at, retryAfter: null, at }, body: '' }
  }
}

function guidIn(body: string): string | undefined {
  const parsed: unknown = JSON.parse(body)
  return typeof parsed === 'object' && parsed !== null && 'guid' in parsed ? String(parsed.guid) : undefined
}
