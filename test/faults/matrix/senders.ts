import type { AssailedPod, LocalClient } from './assailed-pod.js'

/** What became of one request. */
export interface Answer {
  /** `none`: nobody answered; `late`: nobody answered in time, and nobody said so. */
  readonly status: number | 'none' | 'late'
  readonly milliseconds: number
  readonly retryAfter: string | null
  /** When it was asked. */
  readonly at: number
}

/** Each of them once. */
export function statusesIn(answers: readonly Answer[]): readonly Answer['status'][] {
  return [...new Set(answers.map(({ status }) => status))]
}

/** A post that a client has tried to publish, once. */
export interface Written extends Answer {
  readonly text: string
  /** What the answer says. Without one it may be there or not. */
  readonly guid: string | undefined
}

/** Three seconds for a connection and ten for a statement: nobody waits longer. */
const HANGS_AFTER = 15_000

let written = 0

export function askToReceive(pod: AssailedPod, path: string, body: string): Promise<Answer> {
  return ask(`${pod.nextBase()}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/magic-envelope+xml' },
    body,
  }).then(({ answer }) => answer)
}

export async function publish(pod: AssailedPod, client: LocalClient, base = pod.nextBase()): Promise<Written> {
  written += 1
  const text = `Post ${written} of a client`
  const { answer, body } = await callApi(base, client, 'POST', '/posts', { public: true, body: text })
  const guid = answer.status === 200 || answer.status === 201 ? guidIn(body) : undefined
  return { ...answer, text, guid }
}

export function callApi(base: string, { token }: LocalClient, method: string, path: string, content?: object) {
  const body = content === undefined ? undefined : JSON.stringify(content)
  return ask(`${base}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body }),
  })
}

async function ask(url: string, request: RequestInit): Promise<{ readonly answer: Answer; readonly body: string }> {
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
