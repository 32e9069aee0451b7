import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** What is posted to one server, over some connections that each wait for their answer. */
export interface PostLoad {
  readonly port: number
  readonly path: string
  readonly connections: number
  /** Sent in turn. */
  readonly bodies: readonly string[]
  /** Of each body; not set: `path` for all. */
  readonly paths?: readonly string[]
  /** Until the time is over; not set: until each body was sent once. */
  readonly milliseconds?: number
  /** The network address in whose name a proxy on this machine passes them on. */
  readonly from?: string
  /** So many a second; not set: as fast as they are answered. */
  readonly perSecond?: number
}

export interface PostLoadResult {
  readonly requests: number
  readonly seconds: number
  /** Answers that were not 202. */
  readonly wrong: number
  /** From request to answer. */
  readonly milliseconds: readonly number[]
  /** When each request was sent, in the order of the bodies; milliseconds since 1970. */
  readonly sentAt: readonly number[]
  /** When each was answered, in the same order. */
  readonly answeredAt: readonly number[]
}

interface Run extends PostLoad {
  readonly requests: readonly Buffer[]
  readonly start: number
  readonly result: {
    sent: number
    wrong: number
    readonly milliseconds: number[]
    readonly sentAt: number[]
    readonly answeredAt: number[]
  }
}

/** A process of its own, so that its work does not count as the server's. Requests are built before the clock starts. */
process.on('message', async (load: PostLoad) => process.send?.(await post(load)))

async function post(load: PostLoad): Promise<PostLoadResult> {
  const requests = load.bodies.map((body, index) => requestOf(load, load.paths?.[index] ?? load.path, body))
  const result: Run['result'] = { sent: 0, wrong: 0, milliseconds: [], sentAt: [], answeredAt: [] }
  const start = performance.now()
  const run: Run = { ...load, requests, start, result }
  await Promise.all(Array.from({ length: load.connections }, () => converse(run)))
  const { wrong, milliseconds, sentAt, answeredAt } = result
  const seconds = (performance.now() - start) / 1_000
  return { requests: milliseconds.length, seconds, wrong, milliseconds, sentAt, answeredAt }
}

function requestOf({ from }: PostLoad, path: string, body: string): Buffer {
  const forwarded = from === undefined ? '' : `x-forwarded-for: ${from}\r\n`
  const head = `POST ${path} HTTP/1.1\r\nhost: pod.example\r\n${forwarded}content-type: application/magic-envelope+xml\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`
  return Buffer.from(head + body)
}

/** One connection after the other: a server closes each after some requests. */
async function converse(run: Run): Promise<void> {
  while (mayGoOn(run)) await converseOnce(run)
}

function mayGoOn({ result, requests, milliseconds, start }: Run): boolean {
  return milliseconds === undefined ? result.sent < requests.length : performance.now() - start < milliseconds
}

async function converseOnce(run: Run): Promise<void> {
  const socket = connect({ port: run.port, host: '127.0.0.1', noDelay: true })
  let answered: (head: string) => void = () => undefined
  let failed: (error: Error) => void = () => undefined
  let received = ''
  socket.setEncoding('latin1')
  socket.on('error', (error) => failed(error))
  socket.on('close', () => failed(new Error('the server has closed the connection')))
  socket.on('data', (chunk: string) => {
    received += chunk
    const end = received.indexOf('\r\n\r\n')
    if (end === -1) return
    const head = received.slice(0, end)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    if (received.length < end + 4 + length) return
    received = received.slice(end + 4 + length)
    answered(head)
  })

  let isOpen = true
  while (isOpen && mayGoOn(run)) {
    const { result, requests, perSecond, start } = run
    const index = result.sent
    result.sent += 1
    const request = requests[index % requests.length]
    if (request === undefined) break
    const early = perSecond === undefined ? 0 : start + (index * 1_000) / perSecond - performance.now()
    if (early > 1) await pause(early)
    const began = performance.now()
    result.sentAt[index] = Date.now() // by the clock of the rows, which may have been set since this process began
    const head = await new Promise<string>((resolve, reject) => {
      answered = resolve
      failed = reject
      socket.write(request)
    })
    result.milliseconds.push(performance.now() - began)
    result.answeredAt[index] = Date.now()
    if (!head.startsWith('HTTP/1.1 202 ')) result.wrong += 1
    isOpen = !/^connection: close/im.test(head)
  }
  failed = () => undefined
  socket.destroy()
}
