import type { IncomingMessage, Server } from 'node:http'
import type { HttpLimits } from '../../limits.js'

const patientSince = new WeakMap<IncomingMessage, number>()

/** For a body that is far larger than all others, of somebody who is known. The time begins now, also where it was given before. */
export function giveMoreTime(request: IncomingMessage): void {
  patientSince.set(request, performance.now())
}

/** Node knows one time for all requests, which is longer than any; whoever has taken the time that is theirs is cut off earlier. */
export function cutOffSlowRequests(server: Server, limits: HttpLimits): void {
  const arriving = new Map<IncomingMessage, number>()
  server.on('request', (request: IncomingMessage) => {
    if (!hasBody(request)) return
    arriving.set(request, performance.now())
    request.once('close', () => arriving.delete(request))
  })

  function look(): void {
    const now = performance.now()
    for (const [request, since] of arriving) {
      if (since > now - limits.requestTimeoutMs) return // they stand in the order in which they came
      const isPatient = (patientSince.get(request) ?? Number.NEGATIVE_INFINITY) > now - limits.longRequestTimeoutMs
      if (isPatient && !request.complete) continue
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
