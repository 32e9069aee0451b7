import type { FastifyInstance } from 'fastify'

/** Makes a span for each request whose trace is sampled. Without a tracer no hook is added. */
export function addRequestSpans(app: FastifyInstance): void {
  const { tracer } = app.pod
  if (tracer === undefined) return
  app.addHook('onResponse', ({ id, method, routeOptions }, reply, done) => {
    const route = routeOptions.url ?? 'unknown'
    const since = performance.timeOrigin + performance.now() - reply.elapsedTime
    const attributes = { method, route, status: reply.statusCode }
    const span = tracer.begin(`${method} ${route}`, {
      kind: 'server',
      traces: [id],
      isRequest: true,
      since,
      attributes,
    })
    span?.end({ hasFailed: reply.statusCode >= 500 })
    done()
  })
}
