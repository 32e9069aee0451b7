import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a request looked like after the reverse proxy. */
interface ForwardedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: number
}

export interface EchoUpstream {
  readonly port: number
  readonly requests: readonly ForwardedRequest[]
  /** Sends an event to each open stream. */
  sendEvent(text: string): void
  /** Answers the next requests with this status, or breaks their connections. */
  answerWith(status: number | 'break'): void
  close(): Promise<void>
}

/** Stands for a web process: answers each request with what it got, and keeps `/api/v1/streaming` open. */
export async function startEchoUpstream(port = 0): Promise<EchoUpstream> {
  const requests: ForwardedRequest[] = []
  const streams = new Set<import('node:http').ServerResponse>()
  let status: number | 'break' = 200
  const server = createServer((request, response) => {
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
    })
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      if (url === '/health/ready') return response.end('{}')
      const forwarded = { method, url, headers, bytes }
      requests.push(forwarded)
      if (url.startsWith('/api/v1/streaming')) {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.write(': open\n\n')
        streams.add(response)
        return
      }
      if (status === 'break') return void request.socket.destroy()
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(forwarded))
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))

  return {
    port: (server.address() as AddressInfo).port,
    requests,
    sendEvent(text) {
      for (const stream of streams) stream.write(`data: ${text}\n\n`)
    },
    answerWith(next) {
      status = next
    },
    async close() {
      for (const stream of streams) stream.end()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
