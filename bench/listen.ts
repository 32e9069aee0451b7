import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** On a port that nobody has, which it gives. */
export async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as AddressInfo).port // it listens on a port
}
