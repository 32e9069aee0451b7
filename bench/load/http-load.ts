import { connect } from 'node:net'

/** Requests to one server for a given time. Each connection waits for a response before its next request. */
export interface HttpLoad {
  readonly port: number
  /** Sent in turn, repeatedly. */
  readonly requests: readonly LoadRequest[]
  readonly host: string
  readonly connections: number
  readonly milliseconds: number
}

export interface LoadRequest {
  readonly path: string
  /** Access token of the user who sends the request. */
  readonly token?: string
  /** JSON body. Not set: a GET request. */
  readonly body?: object
}

export interface LoadResult {
  readonly responses: number
  readonly seconds: number
  /** Responses with another status than 200, or with another length than the first response to the same request. */
  readonly failures: number
}

/**
 * This file runs as a separate process, so that its processor time does not count as the server's. It uses plain sockets, because an
 * HTTP client costs as much as the server.
 */
process.on('message', async (load: HttpLoad) => process.send?.(await run(load)))

async function run({ port, requests, host, connections, milliseconds }: HttpLoad): Promise<LoadResult> {
  const start = performance.now()
  const state: LoadState = {
    requests: requests.map((request) => formatRequest(host, request)),
    lengths: new Map(),
    next: 0,
    responses: 0,
    failures: 0,
  }
  await Promise.all(Array.from({ length: connections }, () => runConnection(port, start + milliseconds, state)))
  return { responses: state.responses, failures: state.failures, seconds: (performance.now() - start) / 1_000 }
}

function formatRequest(host: string, { path, token, body }: LoadRequest): string {
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  const head = `${path} HTTP/1.1\r\nhost: ${host}\r\naccept: */*\r\n${authorization}`
  if (body === undefined) return `GET ${head}\r\n`
  const json = JSON.stringify(body)
  return `POST ${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`
}

interface LoadState {
  readonly requests: readonly string[]
  /** Length of the first response, by index of the request. */
  readonly lengths: Map<number, number>
  next: number
  responses: number
  failures: number
}

/** Sends requests over one connection until the time is over. */
function runConnection(port: number, until: number, state: LoadState): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let received = ''
    let current = 0
    let nextConnection: Promise<void> | undefined
    const send = () => {
      current = state.next % state.requests.length
      state.next += 1
      socket.write(state.requests[current] ?? '')
    }
    socket.setEncoding('latin1')
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('close', () => resolve(nextConnection))
    socket.on('data', (chunk: string) => {
      received += chunk
      const head = received.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1])
      const end = head + 4 + length
      if (received.length < end) return
      const expected = state.lengths.get(current) ?? length
      state.lengths.set(current, expected)
      state.responses += 1
      if (!received.startsWith('HTTP/1.1 200 ') || length !== expected) state.failures += 1
      // The server closes a connection after a number of responses. Then the load continues over a new one.
      const isLast = /^connection: close/im.test(received.slice(0, head))
      received = received.slice(end)
      const isOver = performance.now() > until
      if (isLast && !isOver) nextConnection = runConnection(port, until, state)
      if (isLast || isOver) socket.destroy()
      else send()
    })
  })
}
