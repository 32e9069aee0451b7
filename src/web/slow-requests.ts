import type { IncomingMessage, Server } from 'node:http'
import type { HttpLimits } from '../limits.js'

const patientWith = new WeakSet<IncomingMessage>()

/** For a body that is far larger than all others, of somebody who is known. */
export function giveMoreTime(request: IncomingMessage): void {
  patientWith.add(request)
}

/** Node knows one time for all requests, which is the longest; whoever has not been given that much is cut off earlier. */
export function cutOffSlowRequests(server: Server, limits: HttpLimits): void {
  const arriving = new Map<IncomingMessage, number>()
  server.on('request', (request: IncomingMessage) => {
    if (!hasBody(request)) return
    arriving.set(request, performance.now())
    request.once('close', () => arriving.delete(request))
  })

  function look(): void {
    const latest = performance.now() - limits.requestTimeoutMs
    for (const [request, since] of arriving) {
      if (since > latest) return // they stand in the order in which they came
      if (patientWith.has(request) && !request.complete) continue
      arriving.delete(request)
      if (!request.complete) server.emit('clientError', new SlowRequest(), request.socket)
    }
  }
  const timer = setInterval(look, limits.connectionsCheckMs).unref()
  server.on('close', () => clearInterval(timer))
}

/** As Node calls it. */
class SlowRequest extends Error {
  override name = 'SlowRequest'
  readonly code = 'ERR_HTTP_REQUEST_TIMEOUT'
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}
