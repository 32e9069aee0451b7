import type { FastifyInstance } from 'fastify'
import { parseTrustedProxies } from '../../networks/trusted-proxies.js'
import { RequestFault } from './request-faults.js'

/** The page by which the pod checks its own proxy. */
export const PROXY_PROBE_PATH = '/health/proxy'

/** The connection stays open for longer than the check waits: a proxy that buffers the answer does not pass it on in time. */
const OPEN_MS = 10_000
const MAX_OPEN = 10

/** Sends one event about the request as it has arrived, and ends later. */
export function addProxyProbe(app: FastifyInstance): void {
  const isTrusted = parseTrustedProxies(app.services.config.trustProxy)
  const open = new Set<() => void>()
  app.addHook('preClose', async () => {
    for (const end of open) end()
  })
  const config = { public: true, quiet: true, lasting: true } as const

  app.get(PROXY_PROBE_PATH, { config, schema: { hide: true }, exposeHeadRoute: false }, (request, reply) => {
    if (open.size >= MAX_OPEN) throw new RequestFault(503, 'Too many checks at a time.')
    const isForwarded = request.headers['x-forwarded-for'] !== undefined
    const forwarded = isForwarded ? (isTrusted(request.socket.remoteAddress) ? 'trusted' : 'untrusted') : 'none'
    reply
      .header('content-type', 'text/event-stream; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('x-accel-buffering', 'no')
      .hijack()
      .raw.writeHead(200, reply.getHeaders() as Record<string, string>)
    reply.raw.write(`data: ${JSON.stringify({ forwarded, protocol: request.protocol })}\n\n`)
    const end = () => reply.raw.end()
    const timer = setTimeout(end, OPEN_MS)
    open.add(end)
    reply.raw.on('close', () => {
      clearTimeout(timer)
      open.delete(end)
    })
  })
}
