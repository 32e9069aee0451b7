import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/** GET requests at a fixed rate, whether or not the earlier ones are answered. */
export interface PacedLoad {
  readonly port: number
  /** Sent in turn. */
  readonly requests: readonly { readonly path: string; readonly token: string }[]
  readonly perSecond: number
  /** Not set: until the next message. */
  readonly milliseconds?: number
}

export interface PacedLoadResult {
  /** From the moment at which the request was due to the end of its answer. */
  readonly milliseconds: readonly number[]
  /** Answers that were not 200. */
  readonly wrong: number
}

let isOver = false

/** A process of its own, so that its work does not delay the server. A text as message ends a load. */
process.on('message', async (message: PacedLoad | 'end') => {
  isOver = message === 'end'
  if (message !== 'end') process.send?.(await run(message))
})

async function run({ port, requests, perSecond, milliseconds = Number.POSITIVE_INFINITY }: PacedLoad) {
  const agent = new Agent({ keepAlive: true })
  const times: number[] = []
  let wrong = 0
  const running: Promise<void>[] = []
  const start = performance.now()
  for (let number = 0; !isOver; number += 1) {
    const due = start + (number * 1_000) / perSecond
    if (due > start + milliseconds) break
    await pause(Math.max(0, due - performance.now()))
    const { path = '/', token = '' } = requests[number % requests.length] ?? {}
    running.push(
      statusOf(agent, port, path, token).then((status) => {
        times.push(performance.now() - due)
        if (status !== 200) wrong += 1
      }),
    )
  }
  await Promise.all(running)
  agent.destroy()
  return { milliseconds: times, wrong } satisfies PacedLoadResult
}

function statusOf(agent: Agent, port: number, path: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'pod.example', authorization: `Bearer ${token}` }
    request({ agent, port, path, headers }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode ?? 0))
    })
      .once('error', reject)
      .end()
  })
}
