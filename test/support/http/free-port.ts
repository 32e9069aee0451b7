import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Range below the ephemeral ports, so that no connection and no `listen(0)` of another process takes the port. */
const FIRST_PORT = 12_000
const LAST_PORT = 32_000

const used = new Set<number>()

/** A port for a pod, whose address must be known before it listens. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT)
    if (used.has(port)) continue
    used.add(port)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
