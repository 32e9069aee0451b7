import { connect, createServer, type Server, type Socket } from 'node:net'

/** A proxy in front of a server. It can refuse, freeze or cut connections. */
export interface TcpProxy {
  readonly port: number
  /** Forwards nothing more, without closing the connections. */
  freeze(): void
  /** Freezes before it forwards the next data that contains this text. */
  freezeAtRequest(text: string): Promise<void>
  /** Closes all connections, and refuses new ones. */
  refuse(): Promise<void>
  /** Forwards the next data that contains this text, and closes the connection instead of forwarding the response. */
  cutAfterRequest(text: string): Promise<void>
  /** Ends `freeze` and `refuse`. */
  recover(): Promise<void>
  /** Forwards new connections to another port. */
  target(port: number): void
  close(): Promise<void>
}

export async function openTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let destination = targetPort
  let frozen = false
  let freezeRequest: { readonly text: string; done(): void } | undefined
  let cut: { readonly text: string; done(): void } | undefined
  const closing = new WeakSet<Socket>()
  const server = createServer((near) => {
    const far = connect(destination, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.setNoDelay()
      from.on('data', (data) => {
        if (from === near && freezeRequest !== undefined && data.includes(freezeRequest.text)) {
          freeze()
          freezeRequest.done()
          freezeRequest = undefined
          return
        }
        if (from === far && closing.has(near)) near.destroy()
        else to.write(data)
      })
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      if (frozen) from.pause()
    }
    near.on('data', (data) => {
      if (cut === undefined || !data.includes(cut.text)) return
      closing.add(near)
      cut.done()
      cut = undefined
    })
  })
  const port = await listen(server, 0)

  function freeze(): void {
    frozen = true
    for (const socket of sockets) socket.pause()
  }

  async function refuse(): Promise<void> {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }

  return {
    port,
    freeze,
    freezeAtRequest: (text) => new Promise((done) => (freezeRequest = { text, done })),
    refuse,
    cutAfterRequest: (text) => new Promise((done) => (cut = { text, done })),
    async recover() {
      frozen = false
      for (const socket of sockets) socket.resume()
      if (!server.listening) await listen(server, port)
    },
    target(newPort) {
      destination = newPort
    },
    close: refuse,
  }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('The server has no port.')
      resolve(address.port)
    })
  })
}
