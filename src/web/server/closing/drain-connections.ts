import type { Server, ServerResponse } from 'node:http'
import { Server as TcpServer } from 'node:net'
import { setTimeout as pause, setImmediate } from 'node:timers/promises'

const runningResponses = new WeakMap<Server, Set<ServerResponse>>()

/** Keeps the running responses of a server, for `drainConnections`. */
export function keepRunningResponses(server: Server): void {
  const running = new Set<ServerResponse>()
  runningResponses.set(server, running)
  server.on('request', (_request, response: ServerResponse) => {
    running.add(response)
    response.once('close', () => running.delete(response))
  })
}

/**
 * Closes the listener, and then each connection after its next response. A proxy may send a write on an idle connection at the moment
 * at which the server closes it; the proxy gets no answer and cannot repeat the write. So idle connections stay open, until the proxy
 * has used or closed them, or `withinMs` is over. New connections are refused, which a proxy tries elsewhere for every request.
 * `endStreams` ends the responses that have no end.
 */
export async function drainConnections(server: Server, withinMs: number, endStreams: () => void): Promise<void> {
  // After a poll of the event loop the queue of new connections is empty; those in it would be reset.
  await setImmediate()
  // `close` of the HTTP server would close idle connections.
  const closed = new Promise<void>((resolve) => TcpServer.prototype.close.call(server, () => resolve()))
  server.prependListener('request', (_request, response: ServerResponse) => {
    response.shouldKeepAlive = false
  })
  for (const response of runningResponses.get(server) ?? []) endAfter(response)
  endStreams()
  const timer = new AbortController()
  await Promise.race([closed, pause(withinMs, undefined, { signal: timer.signal }).catch(() => undefined)])
  timer.abort()
}

function endAfter(response: ServerResponse): void {
  const { socket } = response
  if (response.headersSent) response.once('finish', () => socket?.end())
  else response.shouldKeepAlive = false
}
