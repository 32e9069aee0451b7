import { setTimeout as pause } from 'node:timers/promises'
import { Agent, request } from 'undici'

/** Requests of an attacker to the web process of the pod, each sent once or all of them again and again. */
export interface AttackLoad {
  readonly method: 'GET' | 'POST'
  /** One for each request; the body is empty for a GET. */
  readonly requests: readonly { readonly path: string; readonly body: string }[]
  readonly connections: number
  /** Missing: as fast as the pod answers. */
  readonly perSecond?: number
  /** Missing: each request is sent once. */
  readonly repeatForMs?: number
}

export interface AttackTask {
  readonly port: number
  readonly loads: readonly AttackLoad[]
}

/** How often each status came; `failed` counts the requests without an answer. */
export type AttackAnswers = Readonly<Record<string, number>>

/** A documentation network (RFC 5737): the pod trusts the proxy header of a loopback client. */
const SOURCE = '203.0.113.66'
/** A request that takes longer has blocked a slot of the attacker, not of the pod. */
const ANSWER_WITHIN_MS = 20_000
const MAX_MS = 60_000

/** A process of its own, so that its work does not count as the pod's. */
process.on('message', async (task: AttackTask) => {
  const answers: Record<string, number> = {}
  await Promise.all(task.loads.map((load) => send(task.port, load, answers)))
  process.send?.(answers satisfies AttackAnswers)
})

async function send(port: number, load: AttackLoad, answers: Record<string, number>): Promise<void> {
  const { method, requests, connections, perSecond, repeatForMs } = load
  const agent = new Agent({ connections, headersTimeout: ANSWER_WITHIN_MS, bodyTimeout: ANSWER_WITHIN_MS })
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

  async function sendInTurn(): Promise<void> {
    while (mayContinue()) {
      const index = sent
      sent += 1
      const next = requests[index % requests.length]
      if (next === undefined) return
      if (perSecond !== undefined) await pause(Math.max(0, start + (index * 1_000) / perSecond - performance.now()))
      const status = await statusOf(next)
      answers[status] = (answers[status] ?? 0) + 1
    }
  }

  async function statusOf({ path, body }: AttackLoad['requests'][number]): Promise<string> {
    try {
      const url = `http://127.0.0.1:${port}${path}`
      const answer = await request(url, { dispatcher: agent, method, headers, ...(method === 'POST' && { body }) })
      await answer.body.dump()
      return String(answer.statusCode)
    } catch {
      return 'failed'
    }
  }

  await Promise.all(Array.from({ length: connections }, sendInTurn))
  await agent.destroy()
}
