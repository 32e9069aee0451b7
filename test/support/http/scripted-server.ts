import { once } from 'node:events'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer, type ServerOptions } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

/** A server on loopback that runs a script and counts connections and bytes. */
export interface ScriptedServer {
  readonly port: number
  /** The number of connections so far. */
  readonly connections: number
  /** The number of bytes received over all connections. */
  readonly bytes: number
  /** Resolves when no connection is open. */
  idle(): Promise<void>
  close(): Promise<void>
}

export function serveHttp(listener: RequestListener, host?: string): Promise<ScriptedServer> {
  return start(createHttpServer(listener), host)
}

export function serveHttps(
  certificate: Pick<ServerOptions, 'key' | 'cert'>,
  listener: RequestListener,
): Promise<ScriptedServer> {
  return start(createHttpsServer(certificate, listener))
}

/** A server for responses that no HTTP server would send. */
export function serveRaw(onConnection: (socket: Socket) => void, host?: string): Promise<ScriptedServer> {
  const server = createServer((socket) => {
    socket.resume() // without a reader, the socket emits no 'close'
    onConnection(socket)
  })
  return start(server, host)
}

async function start(server: Server, host = '127.0.0.1'): Promise<ScriptedServer> {
  const open = new Set<Socket>()
  let connections = 0
  let bytesOfClosed = 0
  server.on('connection', (socket: Socket) => {
    connections += 1
    open.add(socket)
    socket.on('error', () => {}) // errors of the peer are ignored
    socket.on('close', () => {
      bytesOfClosed += socket.bytesRead
      open.delete(socket)
    })
  })
  server.on('tlsClientError', () => {})
  await once(server.listen(0, host), 'listening')
  const { port } = server.address() as AddressInfo // it listens on a port

  return {
    port,
    get connections() {
      return connections
    },
    get bytes() {
      return [...open].reduce((sum, socket) => sum + socket.bytesRead, bytesOfClosed)
    },
    async idle() {
      await Promise.all([...open].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}
