import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Listens on a free port and returns it. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port // it listens on a port
}
