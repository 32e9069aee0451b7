import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the range from which systems choose ports for connections and for `listen(0)`, so that nobody takes the port meanwhile. */
const FIRST_PORT = 12_000
const LAST_PORT = 32_000

const used = new Set<number>()

/** The address of a pod contains its port, which must be known before anything listens there. */
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
