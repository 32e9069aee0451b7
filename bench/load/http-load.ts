import { connect } from 'node:net'

/** Sends requests to one server for a given time, over connections that each wait for the response. */
export interface Load {
  readonly port: number
  /** One after the other, over and over. */
  readonly questions: readonly Question[]
  readonly host: string
  readonly connections: number
  readonly milliseconds: number
}

export interface Question {
  readonly path: string
  /** In whose name. */
  readonly token?: string
  /** Of a POST. */
  readonly body?: object
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  /** Answers that were not 200, or not as long as the first one to the same question. */
  readonly wrong: number
}

/**
 * A process of its own, so that its work does not count as the server's. Sockets as they are: a client library costs as much as the
 * server.
 */
process.on('message', async (load: Load) => process.send?.(await run(load)))

async function run({ port, questions, host, connections, milliseconds }: Load): Promise<LoadResult> {
  const start = performance.now()
  const asked: Asked = {
    requests: questions.map((question) => requestOf(host, question)),
    lengths: new Map(),
    next: 0,
    answers: 0,
    wrong: 0,
  }
  await Promise.all(Array.from({ length: connections }, () => ask(port, start + milliseconds, asked)))
  return { requests: asked.answers, wrong: asked.wrong, seconds: (performance.now() - start) / 1_000 }
}

function requestOf(host: string, { path, token, body }: Question): string {
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  const head = `${path} HTTP/1.1\r\nhost: ${host}\r\naccept: */*\r\n${authorization}`
  if (body === undefined) return `GET ${head}\r\n`
  const json = JSON.stringify(body)
  return `POST ${head}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}\r\n\r\n${json}`
}

interface Asked {
  readonly requests: readonly string[]
  /** Of the answers, by request. */
  readonly lengths: Map<number, number>
  next: number
  answers: number
  wrong: number
}

/** One connection, until the time is over. */
function ask(port: number, until: number, asked: Asked): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    let received = ''
    let current = 0
    let another: Promise<void> | undefined
    const send = () => {
      current = asked.next % asked.requests.length
      asked.next += 1
      socket.write(asked.requests[current] ?? '')
    }
    socket.setEncoding('latin1')
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('close', () => resolve(another))
    socket.on('data', (chunk: string) => {
      received += chunk
      const head = received.indexOf('\r\n\r\n')
      if (head === -1) return
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1])
      const end = head + 4 + length
      if (received.length < end) return
      const expected = asked.lengths.get(current) ?? length
      asked.lengths.set(current, expected)
      asked.answers += 1
      if (!received.startsWith('HTTP/1.1 200 ') || length !== expected) asked.wrong += 1
      // After its last answer of many, the server closes the connection; then another one is opened.
      const isLast = /^connection: close/im.test(received.slice(0, head))
      received = received.slice(end)
      const isOver = performance.now() > until
      if (isLast && !isOver) another = ask(port, until, asked)
      if (isLast || isOver) socket.destroy()
      else send()
    })
  })
}
