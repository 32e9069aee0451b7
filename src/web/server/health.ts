import type { FastifyInstance } from 'fastify'
import { singleFlight } from '../../throttling/single-flight.js'

/** Whether a process can do its work now, and what it knows about what it needs. */
export interface Readiness {
  readonly ready: boolean
  /** One word for each thing, such as `database: ok`. */
  readonly [part: string]: boolean | string
}

/** For load balancers and supervisors: `live` means that the event loop turns, `ready` that work makes sense. */
export function addHealthRoutes(app: FastifyInstance, readiness: () => Promise<Readiness>): void {
  const ask = singleFlight(readiness)
  // A busy pod is alive: whoever restarts it for being busy makes it worse.
  const config = { public: true, quiet: true, evenIfBusy: true } as const

  app.get('/health/live', { config, schema: { hide: true } }, async (_request, reply) => {
    reply.header('cache-control', 'no-store')
    return { live: true }
  })
  app.get('/health/ready', { config, schema: { hide: true } }, async (_request, reply) => {
    const answer = await ask()
    return reply
      .code(answer.ready ? 200 : 503)
      .header('cache-control', 'no-store')
      .send(answer)
  })
}
