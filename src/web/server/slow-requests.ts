import type { IncomingMessage, Server } from 'node:http'
import type { HttpLimits } from './limits.js'

const extendedSince = new WeakMap<IncomingMessage, number>()

/** Extends the time limit for a large body of an authenticated client. The time starts now, even if it was extended before. */
export function extendTimeLimit(request: IncomingMessage): void {
  extendedSince.set(request, performance.now())
}

/** Ends requests whose body takes too long. Node has a single limit for all requests, which must be that of the longest ones. */
export function endSlowRequests(server: Server, limits: HttpLimits): void {
  const arrivingRequests = new Map<IncomingMessage, number>()
  server.on('request', (request: IncomingMessage) => {
    if (!hasBody(request)) return
    arrivingRequests.set(request, performance.now())
    request.once('close', () => arrivingRequests.delete(request))
  })

  function checkArriving(): void {
    const now = performance.now()
    for (const [request, since] of arrivingRequests) {
      if (since > now - limits.requestTimeoutMs) return // the map is in order of arrival
      const isExtended = (extendedSince.get(request) ?? Number.NEGATIVE_INFINITY) > now - limits.longRequestTimeoutMs
      if (isExtended && !request.complete) continue
      arrivingRequests.delete(request)
      if (!request.complete) server.emit('clientError', new SlowRequest(), request.socket)
    }
  }
  const timer = setInterval(checkArriving, limits.connectionsCheckMs).unref()
  server.on('close', () => clearInterval(timer))
}

/** Has the error code of Node's own request timeout. */
class SlowRequest extends Error {
  override name = 'SlowRequest'
  readonly code = 'ERR_HTTP_REQUEST_TIMEOUT'
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}
