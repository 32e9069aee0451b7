import { connect } from 'node:net'

/** What one server is asked for a while, over some connections that each wait for their answer. */
export interface Load {
  readonly port: number
  readonly path: string
  readonly host: string
  readonly connections: number
  readonly milliseconds: number
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  /** Answers that were not 200, or not as long as the first one. */
  readonly wrong: number
}

/** A process of its own, so that its work does not count as the server's. Sockets as they are: a client library costs as much as the server. */
process.on('message', async (load: Load) => process.send?.(await run(load)))

async function run({ port, path, host, connections, milliseconds }: Load): Promise<LoadResult> {
  const request = `GET ${path} HTTP/1.1\r\nhost: ${host}\r\naccept: */*\r\n\r\n`
  const start = performance.now()
  const counts = { requests: 0, wrong: 0, length: -1 }
  await Promise.all(Array.from({ length: connections }, () => ask(port, request, start + milliseconds, counts)))
  return { requests: counts.requests, wrong: counts.wrong, seconds: (performance.now() - start) / 1_000 }
}

/** One connection, until the time is over. */
function ask(
  port: number,
  request: string,
  until: number,
  counts: { requests: number; wrong: number; length: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let received = ''
    let next: Promise<void> | undefined
    socket.setEncoding('latin1')
    socket.on('connect', () => socket.write(request))
    socket.on('error', reject)
    socket.on('close', () => resolve(next))
    socket.on('data', (chunk: string) => {
      received += chunk
      const head = received.indexOf('\r\n\r\n')
      if (head === -1) return
      const [, length] = /content-length: (\d+)/i.exec(received) ?? []
      const end = head + 4 + Number(length)
      if (received.length < end) return
      if (counts.length === -1) counts.length = Number(length)
      counts.requests += 1
      if (!received.startsWith('HTTP/1.1 200 ') || Number(length) !== counts.length) counts.wrong += 1
      // After its last answer of many, the server closes the connection; then another one is opened.
      const isLast = /^connection: close/im.test(received.slice(0, head))
      received = received.slice(end)
      const isOver = performance.now() > until
      if (isLast && !isOver) next = ask(port, request, until, counts)
      if (isLast || isOver) socket.destroy()
      else socket.write(request)
    })
  })
}
