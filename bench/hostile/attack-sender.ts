import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'

/** Requests of an attacker to the web process of the pod. Each is sent once, or all of them repeatedly. */
export interface AttackLoad {
  readonly method: 'GET' | 'POST'
  /** Path and body of each request; the body of a GET request is empty. */
  readonly requests: readonly { readonly path: string; readonly body: string }[]
  readonly connections: number
  /** Not set: as fast as the pod responds. */
  readonly perSecond?: number
  /** Not set: each request is sent once. */
  readonly repeatForMs?: number
}

export interface AttackTask {
  readonly port: number
  readonly loads: readonly AttackLoad[]
}

/** Number of responses by status; `failed` counts requests without a response. */
export type AttackResponses = Readonly<Record<string, number>>

/** A documentation network (RFC 5737): the pod trusts the proxy header of a loopback client. */
const SOURCE = '203.0.113.66'
/** After this time a request counts as failed, and its connection sends the next one. */
const RESPONSE_TIMEOUT_MS = 20_000
const MAX_MS = 60_000

/** This file runs as a separate process, so that its processor time does not count as the pod's. */
process.on('message', async (task: AttackTask) => {
  const responses: Record<string, number> = {}
  await Promise.all(task.loads.map((load) => sendLoad(task.port, load, responses)))
  process.send?.(responses satisfies AttackResponses)
})

async function sendLoad(port: number, load: AttackLoad, responses: Record<string, number>): Promise<void> {
  const { method, requests, connections, perSecond, repeatForMs } = load
  const agent = new Agent({ connections, headersTimeout: RESPONSE_TIMEOUT_MS, bodyTimeout: RESPONSE_TIMEOUT_MS })
  const headers = {
    host: 'pod.example',
    'x-forwarded-for': SOURCE,
    ...(method === 'POST' && { 'content-type': 'application/magic-envelope+xml' }),
  }
  const start = performance.now()
  let sent = 0

  function mayContinue(): boolean {
    const elapsed = performance.now() - start
    return elapsed < (repeatForMs ?? MAX_MS) && (repeatForMs !== undefined || sent < requests.length)
  }

  async function sendOverConnection(): Promise<void> {
    while (mayContinue()) {
      const index = sent
      sent += 1
      const nextRequest = requests[index % requests.length]
      if (nextRequest === undefined) return
      if (perSecond !== undefined) await pause(Math.max(0, start + (index * 1_000) / perSecond - performance.now()))
      const status = await sendRequest(nextRequest)
      responses[status] = (responses[status] ?? 0) + 1
    }
  }

  async function sendRequest({ path, body }: AttackLoad['requests'][number]): Promise<string> {
    try {
      const url = `http://127.0.0.1:${port}${path}`
      const response = await request(url, { dispatcher: agent, method, headers, ...(method === 'POST' && { body }) })
      await response.body.dump()
      return String(response.statusCode)
    } catch {
      return 'failed'
    }
  }

  await Promise.all(Array.from({ length: connections }, sendOverConnection))
  await agent.destroy()
}
