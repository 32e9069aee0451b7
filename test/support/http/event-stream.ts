import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { request as requestSecurely } from 'node:https'

interface StreamEvent {
  readonly id: string
  readonly type: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read many kinds of events
  readonly data: any
}

interface StreamOptions {
  /** `http://127.0.0.1:3000`, or https with any certificate. */
  readonly base: string
  /** The host of the request and its certificate, where it is not that of `base`. */
  readonly host?: string
  readonly token: string
  readonly lastEventId?: string | undefined
  /** `types=post` */
  readonly query?: string
}

/** A stream of events as a browser reads it. */
export interface EventStream extends AsyncDisposable {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Events so far. */
  readonly events: readonly StreamEvent[]
  /** The Last-Event-ID that the client would send. */
  readonly lastEventId: string
  readonly comments: number
  readonly retry: number | undefined
  /** Waits for the next `count` events, which no earlier call has returned. */
  take(count: number): Promise<readonly StreamEvent[]>
  /** Resolves once the client has a Last-Event-ID. */
  placed(): Promise<void>
  /** Resolves when the server has ended the stream, in order (`ended`) or not (`broken`). */
  readonly ended: Promise<'ended' | 'broken'>
  pause(): void
  resume(): void
  close(): void
}

export async function openEventStream(options: StreamOptions): Promise<EventStream> {
  const { request: clientRequest, response } = await openRequest(options)
  const reader = readEvents(response, options.lastEventId ?? '')
  const close = () => void clientRequest.destroy()
  let taken = 0
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    get events() {
      return reader.events
    },
    get lastEventId() {
      return reader.lastEventId
    },
    get comments() {
      return reader.comments
    },
    get retry() {
      return reader.retry
    },
    async take(count) {
      await reader.until(() => reader.events.length >= taken + count)
      taken += count
      return reader.events.slice(taken - count, taken)
    },
    placed: () => reader.until(() => reader.lastEventId !== ''),
    ended: reader.ended,
    pause: () => void response.pause(),
    resume: () => void response.resume(),
    close,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
}

/** A client that reconnects after each interruption, as EventSource does, until it is closed. */
export interface Follower {
  readonly events: readonly StreamEvent[]
  readonly connections: number
  /** Whether it has a Last-Event-ID, so that it misses no event from now on. */
  readonly placed: boolean
  /** Resolves once the received events satisfy `enough`. */
  until(enough: (events: readonly StreamEvent[]) => boolean): Promise<void>
  /** Closes the connection, as a network failure does. */
  interrupt(): void
  close(): void
}

const RECONNECT_AFTER_MS = 20

export function follow(where: () => Omit<StreamOptions, 'lastEventId'>): Follower {
  const events: StreamEvent[] = []
  const waiting = new Set<() => void>()
  let lastEventId = ''
  let connections = 0
  let closed = false
  let current: EventStream | undefined

  async function run(): Promise<void> {
    while (!closed) {
      try {
        current = await openEventStream({ ...where(), lastEventId })
        if (current.status === 200) connections += 1
        let copied = 0
        const copyEvents = () => {
          if (current === undefined) return
          events.push(...current.events.slice(copied))
          copied = current.events.length
          lastEventId = current.lastEventId
          for (const check of waiting) check()
        }
        const timer = setInterval(copyEvents, 5)
        await current.ended
        clearInterval(timer)
        copyEvents()
      } catch {
        // no server listens at the moment
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_AFTER_MS))
    }
  }
  void run()

  return {
    events,
    get connections() {
      return connections
    },
    get placed() {
      return lastEventId !== ''
    },
    until: (enough) =>
      new Promise((resolve) => {
        const check = () => {
          if (!enough(events)) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        check()
      }),
    interrupt: () => current?.close(),
    close() {
      closed = true
      current?.close()
    },
  }
}

function openRequest({ base, host, token, lastEventId, query = '' }: StreamOptions) {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(host !== undefined && { host }),
    ...(lastEventId && { 'last-event-id': lastEventId }),
  }
  return new Promise<{ request: ClientRequest; response: IncomingMessage }>((resolve, reject) => {
    const send = base.startsWith('https:') ? requestSecurely : request
    const clientRequest = send(`${base}/api/v1/streaming${query === '' ? '' : `?${query}`}`, {
      headers,
      agent: false,
      ...(host !== undefined && { servername: host }),
      rejectUnauthorized: false,
    })
    clientRequest.on('response', (response) => resolve({ request: clientRequest, response }))
    clientRequest.on('error', reject)
    clientRequest.end()
  })
}

/** Parses events by the rules of the HTML standard, as far as the pod uses them. */
function readEvents(response: IncomingMessage, initialId: string) {
  const events: StreamEvent[] = []
  const waiting = new Set<() => void>()
  const state = { lastEventId: initialId, comments: 0, retry: undefined as number | undefined }
  let text = ''
  let idOfBlock = initialId

  response.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      readBlock(text.slice(0, end))
      text = text.slice(end + 2)
    }
    for (const check of waiting) check()
  })
  const ended = new Promise<'ended' | 'broken'>((resolve) => {
    response.on('error', () => undefined)
    response.on('close', () => resolve(response.complete ? 'ended' : 'broken'))
  })

  function readBlock(block: string): void {
    let type = 'message'
    const data: string[] = []
    for (const line of block.split('\n')) {
      const colon = line.indexOf(':')
      const [name, value] = colon === -1 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')]
      if (name === '') state.comments += 1
      else if (name === 'id') idOfBlock = value
      else if (name === 'event') type = value
      else if (name === 'data') data.push(value)
      else if (name === 'retry') state.retry = Number(value)
    }
    state.lastEventId = idOfBlock
    if (data.length > 0) events.push({ id: idOfBlock, type, data: JSON.parse(data.join('\n')) })
  }

  return {
    events,
    ended,
    get lastEventId() {
      return state.lastEventId
    },
    get comments() {
      return state.comments
    },
    get retry() {
      return state.retry
    },
    until: (condition: () => boolean) =>
      new Promise<void>((resolve, reject) => {
        const check = () => {
          if (!condition()) return
          waiting.delete(check)
          resolve()
        }
        waiting.add(check)
        void ended.then(() => reject(new Error(`The stream ended with ${events.length} events.`)))
        check()
      }),
  }
}
