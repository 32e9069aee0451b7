import { type FastifyInstance, fastify } from 'fastify'
import type { Logger } from 'pino'
import { singleFlight } from '../concurrency/single-flight.js'
import { addHealthRoutes, type Readiness } from '../web/server/health.js'
import { serverOptions } from '../web/server/server-options.js'
import type { Metrics } from './metrics.js'

/** The default ports of metrics and health, one for each kind of process. */
export const ADMIN_PORTS = { web: 9394, worker: 9395 } as const

export interface OperatorParts {
  readonly log: Logger
  readonly metrics: Metrics
  /** Whether this process can do its work now. */
  readiness(): Promise<Readiness>
}

/** The operator's server, on an address of its own: metrics must never be public. */
export async function buildOperatorApp({ log, metrics, readiness }: OperatorParts): Promise<FastifyInstance> {
  const app = fastify({ ...serverOptions(log) })
  const read = singleFlight(() => metrics.text())

  addHealthRoutes(app, readiness)
  app.get('/metrics', async (_request, reply) => reply.type(metrics.registry.contentType).send(await read()))
  await app.ready()
  return app
}
