import type { FastifyInstance } from 'fastify'

const CHECK_INTERVAL_MS = 50

/** Accepts no new connections, finishes running requests, and closes the remaining connections after `withinMs`. */
export async function closeApp(app: FastifyInstance, withinMs: number): Promise<void> {
  // A kept-alive connection becomes idle after its response, and would delay the end.
  const closeIdle = setInterval(() => app.server.closeIdleConnections(), CHECK_INTERVAL_MS)
  const closeAll = setTimeout(() => app.server.closeAllConnections(), withinMs)
  await app.close().finally(() => {
    clearInterval(closeIdle)
    clearTimeout(closeAll)
  })
}
