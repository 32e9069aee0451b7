import { createServer, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpLimits } from '../../limits.js'
import { type ConnectionLimitOptions, limitConnections } from '../limits/connection-limit.js'
import { cutOffSlowRequests } from './slow-requests.js'

export type ConnectionOptions = Omit<ConnectionLimitOptions, 'limits'>

/** For a server that only the operator reaches. */
const NO_ADDRESS_LIMIT: ConnectionOptions = { isTrustedProxy: () => true, countClosure: () => undefined }

/** How long and how much anything may be on a connection; the defaults of Node and Fastify would wait for ever. */
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
    inTurn(serve, limits.requestsAhead),
  )
  limitConnections(server, { limits, ...connections })
  server.maxRequestsPerSocket = limits.requestsPerSocket
  server.setTimeout(limits.idleTimeoutMs)
  cutOffSlowRequests(server, limits)
  closeSilentOnesToo(server)
  return server
}

/** Serves a connection as long as its client waits for answers; one that sends on and on is cut off. */
function inTurn(serve: RequestListener, ahead: number): RequestListener {
  const underWay = new WeakMap<Socket, number>()
  const add = (socket: Socket, change: number) => {
    const count = (underWay.get(socket) ?? 0) + change
    underWay.set(socket, count)
    return count
  }
  return (request, response) => {
    const { socket } = request
    if (socket.destroyed) return // what was read together with the request that was one too many
    if (add(socket, 1) > ahead) {
      socket.destroy()
      return
    }
    response.on('close', () => add(socket, -1))
    serve(request, response)
  }
}

/** Browsers open connections in advance. For Node these are not idle before their first request, and hold up the end. */
function closeSilentOnesToo(server: Server): void {
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
