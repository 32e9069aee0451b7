import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** POST requests to one server. Each connection waits for a response before its next request. */
export interface PostLoad {
  readonly port: number
  readonly path: string
  readonly connections: number
  /** Sent in turn. */
  readonly bodies: readonly string[]
  /** Path of each body. Not set: `path` for all bodies. */
  readonly paths?: readonly string[]
  /** Duration. Not set: each body is sent once. */
  readonly milliseconds?: number
  /** Client address in the X-Forwarded-For header. */
  readonly clientAddress?: string
  /** Rate of requests. Not set: as fast as the server responds. */
  readonly perSecond?: number
}

export interface PostLoadResult {
  readonly requests: number
  readonly seconds: number
  /** Responses with another status than 202. */
  readonly failures: number
  /** Latency of each request. */
  readonly milliseconds: readonly number[]
  /** Time of each request in milliseconds since 1970, in the order of the bodies. */
  readonly sentAt: readonly number[]
  /** Time of each response, in the same order. */
  readonly respondedAt: readonly number[]
}

interface Run extends PostLoad {
  readonly requests: readonly Buffer[]
  readonly start: number
  readonly result: {
    sent: number
    failures: number
    readonly milliseconds: number[]
    readonly sentAt: number[]
    readonly respondedAt: number[]
  }
}

/** This file runs as a separate process, so that its processor time does not count as the server's. */
process.on('message', async (load: PostLoad) => process.send?.(await runPostLoad(load)))

async function runPostLoad(load: PostLoad): Promise<PostLoadResult> {
  // All requests are built before the clock starts.
  const requests = load.bodies.map((body, index) => formatRequest(load, load.paths?.[index] ?? load.path, body))
  const result: Run['result'] = { sent: 0, failures: 0, milliseconds: [], sentAt: [], respondedAt: [] }
  const start = performance.now()
  const run: Run = { ...load, requests, start, result }
  await Promise.all(Array.from({ length: load.connections }, () => runConnections(run)))
  const { failures, milliseconds, sentAt, respondedAt } = result
  const seconds = (performance.now() - start) / 1_000
  return { requests: milliseconds.length, seconds, failures, milliseconds, sentAt, respondedAt }
}

function formatRequest({ clientAddress }: PostLoad, path: string, body: string): Buffer {
  const forwarded = clientAddress === undefined ? '' : `x-forwarded-for: ${clientAddress}\r\n`
  const head = `POST ${path} HTTP/1.1\r\nhost: pod.example\r\n${forwarded}content-type: application/magic-envelope+xml\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`
  return Buffer.from(head + body)
}

/** Opens one connection after the other, because the server closes a connection after a number of requests. */
async function runConnections(run: Run): Promise<void> {
  while (mayContinue(run)) await runConnection(run)
}

function mayContinue({ result, requests, milliseconds, start }: Run): boolean {
  return milliseconds === undefined ? result.sent < requests.length : performance.now() - start < milliseconds
}

async function runConnection(run: Run): Promise<void> {
  const socket = connect({ port: run.port, host: '127.0.0.1', noDelay: true })
  let resolveResponse: (head: string) => void = () => undefined
  let rejectResponse: (error: Error) => void = () => undefined
  let received = ''
  socket.setEncoding('latin1')
  socket.on('error', (error) => rejectResponse(error))
  socket.on('close', () => rejectResponse(new Error('The server has closed the connection.')))
  socket.on('data', (chunk: string) => {
    received += chunk
    const end = received.indexOf('\r\n\r\n')
    if (end === -1) return
    const head = received.slice(0, end)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (received.length < end + 4 + length) return
    received = received.slice(end + 4 + length)
    resolveResponse(head)
  })

  let isOpen = true
  while (isOpen && mayContinue(run)) {
    const { result, requests, perSecond, start } = run
    const index = result.sent
    result.sent += 1
    const request = requests[index % requests.length]
    if (request === undefined) break
    const waitMs = perSecond === undefined ? 0 : start + (index * 1_000) / perSecond - performance.now()
    if (waitMs > 1) await pause(waitMs)
    const began = performance.now()
    result.sentAt[index] = Date.now() // wall clock, as in the rows: a monotonic clock does not follow its adjustments
    const head = await new Promise<string>((resolve, reject) => {
      resolveResponse = resolve
      rejectResponse = reject
      socket.write(request)
    })
    result.milliseconds.push(performance.now() - began)
    result.respondedAt[index] = Date.now()
    if (!head.startsWith('HTTP/1.1 202 ')) result.failures += 1
    isOpen = !/^connection: close/im.test(head)
  }
  rejectResponse = () => undefined
  socket.destroy()
}
