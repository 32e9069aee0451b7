import { connect, createServer, type Server, type Socket } from 'node:net'

/** A proxy in front of a dependency of a process; it can break the connection at once, or silently. */
export interface TcpProxy {
  readonly port: number
  /** The other side stops answering, without closing the connection. */
  freeze(): void
  /** The other side is gone: connections end, new ones are refused. */
  refuse(): Promise<void>
  /** Forwards the next data that contains this text, and closes the connection instead of forwarding the response. */
  cutAfterRequest(text: string): Promise<void>
  /** As if nothing had been. */
  recover(): Promise<void>
  /** From now on connections lead to another port. */
  target(port: number): void
  close(): Promise<void>
}

export async function openTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>()
  let destination = targetPort
  let frozen = false
  let fatal: { readonly text: string; done(): void } | undefined
  const doomed = new WeakSet<Socket>()
  const server = createServer((near) => {
    const far = connect(destination, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.setNoDelay()
      from.on('data', (data) => {
        if (from === far && doomed.has(near)) near.destroy()
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
      if (fatal === undefined || !data.includes(fatal.text)) return
      doomed.add(near)
      fatal.done()
      fatal = undefined
    })
  })
  const port = await listen(server, 0)

  async function refuse(): Promise<void> {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  }

  return {
    port,
    freeze() {
      frozen = true
      for (const socket of sockets) socket.pause()
    },
    refuse,
    cutAfterRequest: (text) => new Promise((done) => (fatal = { text, done })),
    async recover() {
      frozen = false
      for (const socket of sockets) socket.resume()
      if (!server.listening) await listen(server, port)
    },
    target(another) {
      destination = another
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
      if (address === null || typeof address === 'string') throw new Error('a server on TCP has an address with a port')
      resolve(address.port)
    })
  })
}
