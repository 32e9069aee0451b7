import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { LocalClient, PodUnderFaults } from './pod-under-faults.js'

/** Result of one request. */
export interface Answer {
  /** `none`: no response; `late`: no response within the time limit, and no error. */
  readonly status: number | 'none' | 'late'
  readonly milliseconds: number
  readonly retryAfter: string | null
  /** When the request was sent. */
  readonly at: number
}

/** An answer and its body. */
interface Heard {
  readonly answer: Answer
  readonly body: string
}

/** The distinct statuses. */
export function statusesIn(answers: readonly Answer[]): readonly Answer['status'][] {
  return [...new Set(answers.map(({ status }) => status))]
}

/** Statuses without a fault; a busy machine may answer 503 to some requests. */
export function expectUnaffected(answers: readonly Answer[]): void {
  const well: readonly unknown[] = [200, 202]
  const others = answers.filter(({ status }) => !well.includes(status))
  expect(others.filter(({ status }) => status !== 503)).toEqual([])
  expect(others.length).toBeLessThan(Math.max(2, answers.length / 10))
}

/** A post that a client has tried to publish once. */
export interface Written extends Answer {
  readonly text: string
  /** The guid in the answer. Without an answer the post may exist or not. */
  readonly guid: string | undefined
}

/** Longest wait for an answer: three seconds for a connection and ten for a statement. */
const HANGS_AFTER = 15_000

/** Attempts of a client that retries, at two processes in turn; a busy machine answers 503 for some time. */
const PATIENCE = 40
const ASKS_AGAIN_AFTER = 100

let texts = 0

export function askToReceive(pod: PodUnderFaults, path: string, body: string, base = pod.nextBase()): Promise<Answer> {
  return ask(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/magic-envelope+xml' },
    body,
  }).then(({ answer }) => answer)
}

export async function publish(pod: PodUnderFaults, client: LocalClient, base = pod.nextBase()): Promise<Written> {
  const text = nextText()
  return written(text, await callApi(base, client, 'POST', '/posts', { public: true, body: text }))
}

/** Acts as a client behind a proxy that retries at the other process with the same idempotency key. */
export async function publishPatiently(pod: PodUnderFaults, client: LocalClient): Promise<Written> {
  const text = nextText()
  return written(text, await callPatiently(pod, client, 'POST', '/posts', { public: true, body: text }))
}

export async function callPatiently(
  pod: PodUnderFaults,
  client: Pick<LocalClient, 'token'>,
  method: string,
  path: string,
  content?: object,
  hear: (answer: Answer) => void = () => {},
): Promise<Heard> {
  const headers = { 'idempotency-key': randomUUID() }
  for (let turn = 1; ; turn += 1) {
    const heard = await callApi(pod.nextBase(), client, method, path, content, headers)
    hear(heard.answer)
    if (turn === PATIENCE || (heard.answer.status !== 'none' && heard.answer.status !== 503)) return heard
    await pause(ASKS_AGAIN_AFTER)
  }
}

function nextText(): string {
  texts += 1
  return `Post ${texts} of a client`
}

function written(text: string, { answer, body }: Heard): Written {
  const guid = answer.status === 200 || answer.status === 201 ? guidIn(body) : undefined
  return { ...answer, text, guid }
}

export function callApi(
  base: string,
  { token }: Pick<LocalClient, 'token'>,
  method: string,
  path: string,
  content?: object,
  headers: Readonly<Record<string, string>> = {},
) {
  const type = content === undefined ? {} : { 'content-type': 'application/json' }
  return ask(`${base}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...type, ...headers },
    ...(content !== undefined && { body: JSON.stringify(content) }),
  })
}

async function ask(url: string, request: RequestInit): Promise<Heard> {
  const at = Date.now()
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(HANGS_AFTER) })
    const body = await response.text()
    const retryAfter = response.headers.get('retry-after')
    return { answer: { status: response.status, milliseconds: Date.now() - at, retryAfter, at }, body }
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === 'TimeoutError'
    const status = isLate ? 'late' : 'none'
    return { answer: { status, milliseconds: Date.now() - at, retryAfter: null, at }, body: '' }
  }
}

function guidIn(body: string): string | undefined {
  const answer: unknown = JSON.parse(body)
  return typeof answer === 'object' && answer !== null && 'guid' in answer ? String(answer.guid) : undefined
}
