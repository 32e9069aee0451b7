import { createServer, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'
import { type ConnectionLimitOptions, limitConnections } from '../limits/connection-limit.js'
import { keepRunningResponses } from './closing/drain-connections.js'
import type { HttpLimits } from './limits.js'
import { endSlowRequests } from './slow-requests.js'

export type ConnectionOptions = Omit<ConnectionLimitOptions, 'limits'>

/** Options of a server that only the operator reaches. */
const NO_ADDRESS_LIMIT: ConnectionOptions = { isTrustedProxy: () => true, countClosure: () => undefined }

/** An HTTP server with limits of time and size on every connection; the defaults of Node and Fastify have none for most of them. */
export function openHttpServer(
  serve: RequestListener,
  limits: HttpLimits,
  connections: ConnectionOptions = NO_ADDRESS_LIMIT,
): Server {
  const server = createServer(
    {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.turnTimeoutMs + limits.longRequestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.connectionsCheckMs,
    },
    limitPipelining(serve, limits.requestsAhead),
  )
  limitConnections(server, { limits, ...connections })
  server.maxRequestsPerSocket = limits.requestsPerSocket
  server.setTimeout(limits.idleTimeoutMs)
  endSlowRequests(server, limits)
  closeUnusedWithIdle(server)
  keepRunningResponses(server)
  return server
}

/** Closes a connection whose client sends more than `maxPending` requests without waiting for responses. */
function limitPipelining(serve: RequestListener, maxPending: number): RequestListener {
  const pending = new WeakMap<Socket, number>()
  const addPending = (socket: Socket, change: number) => {
    const count = (pending.get(socket) ?? 0) + change
    pending.set(socket, count)
    return count
  }
  return (request, response) => {
    const { socket } = request
    if (socket.destroyed) return // parsed from the same bytes as the request that exceeded the limit
    if (addPending(socket, 1) > maxPending) {
      socket.destroy()
      return
    }
    response.on('close', () => addPending(socket, -1))
    serve(request, response)
  }
}

/**
 * Makes `closeIdleConnections` close connections that have sent nothing, too. Browsers open them in advance; Node does not count
 * them as idle, so they would delay the end of the process.
 */
function closeUnusedWithIdle(server: Server): void {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const closeIdle = server.closeIdleConnections.bind(server)
  server.closeIdleConnections = () => {
    closeIdle()
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  }
}
