import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/** GET requests at a fixed rate. A request does not wait for earlier responses. */
export interface PacedLoad {
  readonly port: number
  /** Sent in turn. */
  readonly requests: readonly { readonly path: string; readonly token: string }[]
  readonly perSecond: number
  /** Not set: the load runs until the next message. */
  readonly milliseconds?: number
}

export interface PacedLoadResult {
  /** Latency of each request: from the time at which it was due to the end of its response. */
  readonly milliseconds: readonly number[]
  /** Responses with another status than 200. */
  readonly failures: number
}

let isOver = false

/** This file runs as a separate process, so that it does not delay the server. The message `end` ends a load. */
process.on('message', async (message: PacedLoad | 'end') => {
  isOver = message === 'end'
  if (message !== 'end') process.send?.(await run(message))
})

async function run({ port, requests, perSecond, milliseconds = Number.POSITIVE_INFINITY }: PacedLoad) {
  const agent = new Agent({ keepAlive: true })
  const times: number[] = []
  let failures = 0
  const running: Promise<void>[] = []
  const start = performance.now()
  for (let number = 0; !isOver; number += 1) {
    const due = start + (number * 1_000) / perSecond
    if (due > start + milliseconds) break
    await pause(Math.max(0, due - performance.now()))
    const { path = '/', token = '' } = requests[number % requests.length] ?? {}
    running.push(
      sendRequest(agent, port, path, token).then((status) => {
        times.push(performance.now() - due)
        if (status !== 200) failures += 1
      }),
    )
  }
  await Promise.all(running)
  agent.destroy()
  return { milliseconds: times, failures } satisfies PacedLoadResult
}

function sendRequest(agent: Agent, port: number, path: string, token: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'pod.example', authorization: `Bearer ${token}` }
    request({ agent, port, path, headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0))
    })
      .once('error', reject)
      .end()
  })
}
