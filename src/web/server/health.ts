import type { FastifyInstance } from 'fastify'
import { singleFlight } from '../../concurrency/single-flight.js'
import { readSoftware } from '../../config/software.js'

/** Whether a process can do its work now, and the state of its dependencies. */
export interface Readiness {
  readonly ready: boolean
  /** The state of one dependency, such as `database: ok`. */
  readonly [dependency: string]: boolean | string
}

/**
 * Adds the health checks for load balancers and supervisors: `live` means that the event loop runs, `ready` that requests can be served.
 */
export function addHealthRoutes(app: FastifyInstance, readiness: () => Promise<Readiness>): void {
  const readReadiness = singleFlight(readiness)
  // An overloaded pod is alive: a restart would make the overload worse.
  const config = { public: true, quiet: true, evenIfBusy: true } as const

  app.get('/health/live', { config, schema: { hide: true } }, async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    return { live: true }
  })
  const { version } = readSoftware()
  app.get('/health/ready', { config, schema: { hide: true } }, async (_request, reply) => {
    const response = await readReadiness()
    return reply
      .code(response.ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ ...response, version })
  })
}
