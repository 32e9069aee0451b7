import type { FastifyInstance } from 'fastify'

const BANNER = '<p role="note"><strong>This copy of the pod is isolated: it sends nothing to other pods.</strong></p>'

/** Adds a banner to every HTML page of an isolated pod. Register it before the compression. */
export function addIsolationBanner(app: FastifyInstance): void {
  app.addHook('onSend', async (_request, reply, payload) => {
    if (typeof payload !== 'string' || !String(reply.getHeader('content-type')).startsWith('text/html')) return payload
    reply.removeHeader('content-length')
    return payload.replace(/<body[^>]*>/, (body) => `${body}\n${BANNER}`)
  })
}
