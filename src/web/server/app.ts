import { type FastifyInstance, type FastifyPluginAsync, fastify } from 'fastify'
import type { PackingLimits } from '../../jobs/inbound/pack-messages.js'
import { HTTP_LIMITS, type HttpLimits, LIVE_LIMITS, type LiveLimits } from '../../limits.js'
import { openTrustedProxies } from '../../networks/trusted-proxies.js'
import type { Pod } from '../../pod/pod.js'
import { addAuthentication, checkAccessOf, type KnownRoute } from '../api/authentication.js'
import { openClosureCounts } from '../limits/closure-counts.js'
import type { ConnectionClosure } from '../limits/connection-limit.js'
import { watchPressure } from '../limits/load-shedding.js'
import { type LiveChannel, openLiveChannel } from '../live/channel.js'
import { oidcRoutes } from '../oidc/routes.js'
import { addApiDocs } from '../openapi/document.js'
import { apiRoutes } from '../routes/api/api-routes.js'
import { type InboundEndpoint, openInboundEndpoint } from '../routes/federation/inbound-endpoint.js'
import { receiveRoutes } from '../routes/federation/receive.js'
import { siteFileRoutes } from '../routes/pages/site-files.js'
import { answerNotFound, handleError } from './error-handler.js'
import { addHeaders } from './headers.js'
import { addHealthRoutes, type Readiness } from './health.js'
import { networkRoutes } from './network-routes.js'
import { webReadiness } from './readiness.js'
import { RequestFault, tooBusy } from './request-faults.js'
import { addRequestLog } from './request-log.js'
import { serverOptions } from './server-options.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answered however late the event loop is. */
    evenIfBusy?: true
    /** Its answer lasts as long as the client likes, which says nothing about the pod. */
    lasting?: true
  }

  interface FastifyInstance {
    readonly pod: Pod
    /** Whether the process can serve now; false from the moment it begins to close. */
    readonly readiness: () => Promise<Readiness>
    readonly door: InboundEndpoint
    readonly live: LiveChannel
    /** Connections that this process has closed to keep places free, by reason. */
    readonly closedConnections: () => Iterable<readonly [ConnectionClosure, number]>
    /** Every route there is, with who may use it. */
    readonly knownRoutes: readonly KnownRoute[]
  }
}

export interface AppOptions {
  readonly limits?: HttpLimits
  readonly live?: LiveLimits
  readonly receive?: PackingLimits
  /** Counts the requests that this app answers. */
  readonly metrics?: { watch(app: FastifyInstance): void }
  /** What is below /api/v1; tests bring routes that refuse, fail or take their time. */
  readonly api?: FastifyPluginAsync
}

/** The public server: everything that people, clients and other pods reach over HTTP. */
export async function buildApp(
  pod: Pod,
  { limits = HTTP_LIMITS, live = LIVE_LIMITS, receive, metrics, api = apiRoutes }: AppOptions = {},
): Promise<FastifyInstance> {
  const closures = openClosureCounts()
  const connections = {
    isTrustedProxy: openTrustedProxies(pod.config.trustProxy),
    countClosure: closures.count,
  }
  const app = fastify({ ...serverOptions(pod.log, limits, connections), trustProxy: pod.config.trustProxy })
  app.decorate('closedConnections', closures.all)

  const routes: KnownRoute[] = []
  app.addHook('onRoute', (route) => void routes.push(route))
  app.decorate('knownRoutes', routes)

  let closing = false
  app.addHook('preClose', async () => {
    closing = true
    await app.live.close()
  })
  app.decorate('pod', pod)
  app.decorate('door', openInboundEndpoint(pod, receive))
  app.decorate('live', openLiveChannel(pod, live))
  app.addHook('onClose', async () => app.door.packing.close())
  app.decorate(
    'readiness',
    webReadiness(pod, () => closing),
  )
  app.setErrorHandler(handleError)
  // Each part of the pod reads its own kinds of bodies, and nobody reads the body of a request for nothing.
  app.removeAllContentTypeParsers()
  // It only tells, and each part says no in its own way.
  const pressure = watchPressure(limits.eventLoopDelayMs)
  app.decorate('isUnderPressure', pressure.isHigh)
  app.addHook('onClose', async () => pressure.stop())

  // Apart from all that people and clients need: it would cost more than the messages themselves, which come by the thousand.
  await app.register(receiveRoutes)
  await app.register(async (others) => {
    others.setNotFoundHandler(answerNotFound)
    addRequestLog(others)
    metrics?.watch(others)
    addHeaders(others, { https: pod.config.url.startsWith('https:') })
    others.addHook('onRequest', ({ originalUrl, routeOptions }, _reply, done) => {
      if (originalUrl.length > limits.urlBytes) return done(new RequestFault(414, 'The address is too long.'))
      if (app.isUnderPressure() && !routeOptions.config.evenIfBusy) return done(tooBusy(limits.retryAfterSeconds))
      done()
    })
    addAuthentication(others, pod)

    await addApiDocs(others)
    await others.register(api, { prefix: '/api/v1' })
    await others.register(oidcRoutes)
    await others.register(siteFileRoutes)
    await others.register(networkRoutes)
    addHealthRoutes(others, app.readiness)
  })

  checkAccessOf(routes)
  await app.ready()
  return app
}
