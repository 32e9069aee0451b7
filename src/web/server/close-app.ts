import type { FastifyInstance } from 'fastify'

const LOOK_EVERY_MS = 50

/** Takes no new connections, lets requests end that are under way, and after `within` milliseconds cuts off what is left. */
export async function closeApp(app: FastifyInstance, within: number): Promise<void> {
  // A client keeps its connection when it has its answer, and would keep us with it.
  const look = setInterval(() => app.server.closeIdleConnections(), LOOK_EVERY_MS)
  const cut = setTimeout(() => app.server.closeAllConnections(), within)
  await app.close().finally(() => {
    clearInterval(look)
    clearTimeout(cut)
  })
}
