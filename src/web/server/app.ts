import { type FastifyInstance, type FastifyPluginAsync, fastify } from 'fastify'
import type { PackingLimits } from '../../jobs/inbound/pack-messages.js'
import { parseTrustedProxies } from '../../networks/trusted-proxies.js'
import type { Services } from '../../services/services.js'
import { addAuthentication, checkRouteAccess, type KnownRoute } from '../api/authentication.js'
import { openClosureCounts } from '../limits/closure-counts.js'
import type { ConnectionClosure } from '../limits/connection-limit.js'
import { watchPressure } from '../limits/load-shedding.js'
import { addNetworkAccess } from '../limits/network-access.js'
import { type LiveChannel, openLiveChannel } from '../live/channel.js'
import { LIVE_LIMITS, type LiveLimits } from '../live/limits.js'
import { oidcRoutes } from '../oidc/routes.js'
import { addApiDocs } from '../openapi/document.js'
import { adminRoutes } from '../routes/admin/admin-routes.js'
import { apiRoutes } from '../routes/api/api-routes.js'
import { type InboundEndpoint, openInboundEndpoint } from '../routes/federation/inbound-endpoint.js'
import { receiveRoutes } from '../routes/federation/receive.js'
import { siteFileRoutes } from '../routes/pages/site-files.js'
import { handleError, sendNotFound } from './error-handler.js'
import { addHeaders } from './headers.js'
import { addHealthRoutes, type Readiness } from './health.js'
import { HTTP_LIMITS, type HttpLimits } from './limits.js'
import { addIsolationBanner, addSourceLink } from './page-additions.js'
import { addProxyProbe } from './proxy-probe.js'
import { publicRoutes } from './public-routes.js'
import { webReadiness } from './readiness.js'
import { RequestFault, tooBusy } from './request-faults.js'
import { addRequestLog, addRequestSpans, traceReader } from './request-log.js'
import { addRequestServices } from './request-services.js'
import { useValidators } from './schemas/validation.js'
import { serverOptions } from './server-options.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route is answered even while the event loop is overloaded. */
    evenIfBusy?: true
    /** The response stays open until the client closes it, so its duration says nothing about the pod. */
    lasting?: true
  }

  interface FastifyInstance {
    readonly services: Services
    /** Whether the process can serve requests; false as soon as it begins to close. */
    readonly readiness: () => Promise<Readiness>
    /** Lets `/health/ready` answer 503, so that a load balancer sends no further requests. */
    readonly announceClosing: () => void
    readonly inboundEndpoint: InboundEndpoint
    readonly live: LiveChannel
    /** Connections that this process closed to keep places free, by reason. */
    readonly closedConnections: () => Iterable<readonly [ConnectionClosure, number]>
    /** All routes with their access rules. */
    readonly knownRoutes: readonly KnownRoute[]
  }
}

export interface AppOptions {
  readonly limits?: HttpLimits
  readonly live?: LiveLimits
  readonly receive?: PackingLimits
  /** Counts the requests that this app answers. */
  readonly metrics?: { watch(app: FastifyInstance): void }
  /** Routes below /api/v1; tests pass routes that refuse, fail or are slow. */
  readonly api?: FastifyPluginAsync
}

/** Builds the public server, with every route for people, clients and other pods. */
export async function buildApp(
  services: Services,
  { limits = HTTP_LIMITS, live = LIVE_LIMITS, receive, metrics, api = apiRoutes }: AppOptions = {},
): Promise<FastifyInstance> {
  const closures = openClosureCounts()
  const connections = {
    isTrustedProxy: parseTrustedProxies(services.config.trustProxy),
    countClosure: closures.count,
  }
  const app = fastify({
    ...serverOptions(services.log, limits, connections),
    genReqId: traceReader(services.config.trustProxy),
    trustProxy: services.config.trustProxy,
  })
  app.decorate('closedConnections', closures.all)

  const routes: KnownRoute[] = []
  app.addHook('onRoute', (route) => void routes.push(route))
  app.decorate('knownRoutes', routes)

  let isClosing = false
  app.decorate('announceClosing', () => {
    isClosing = true
  })
  app.addHook('preClose', async () => {
    app.announceClosing()
    await app.live.close()
  })
  app.decorate('services', services)
  app.decorate('inboundEndpoint', openInboundEndpoint(services, receive))
  app.decorate('live', openLiveChannel(services, live))
  app.addHook('onClose', async () => app.inboundEndpoint.packing.close())
  app.decorate(
    'readiness',
    webReadiness(services, () => isClosing),
  )
  app.setErrorHandler(handleError)
  // Each group of routes adds parsers for the bodies that it accepts; other bodies are not read.
  app.removeAllContentTypeParsers()
  useValidators(app)
  // Only measures; each group of routes refuses requests in its own format.
  const pressure = watchPressure(limits.eventLoopDelayMs)
  app.decorate('isUnderPressure', pressure.isHigh)
  app.addHook('onClose', async () => pressure.stop())

  // Without the hooks of other routes, which would cost more than handling a message.
  await app.register(receiveRoutes)
  await app.register(async (publicApp) => {
    publicApp.setNotFoundHandler(sendNotFound)
    addRequestLog(publicApp)
    addRequestSpans(publicApp)
    metrics?.watch(publicApp)
    addHeaders(publicApp, {
      https: services.config.url.startsWith('https:'),
      picturesUrl: services.config.uploadsBaseUrl,
      adminOrigins: services.config.adminApiOrigins,
    })
    publicApp.addHook('onRequest', ({ originalUrl, routeOptions }, _reply, done) => {
      if (originalUrl.length > limits.urlBytes) return done(new RequestFault(414, 'The URL is too long.'))
      if (app.isUnderPressure() && !routeOptions.config.evenIfBusy) return done(tooBusy(limits.retryAfterSeconds))
      done()
    })
    addRequestServices(publicApp)
    addAuthentication(publicApp, services)
    if (services.config.isolated) addIsolationBanner(publicApp)
    if (services.config.sourceUrl !== undefined) addSourceLink(publicApp, services, services.config.sourceUrl)

    await addApiDocs(publicApp)
    await publicApp.register(async (forPeople) => {
      addNetworkAccess(forPeople)
      await forPeople.register(api, { prefix: '/api/v1' })
      await forPeople.register(adminRoutes, { prefix: '/api/admin/v1' })
      await forPeople.register(oidcRoutes)
    })
    await publicApp.register(siteFileRoutes)
    await publicApp.register(publicRoutes)
    addHealthRoutes(publicApp, app.readiness)
    addProxyProbe(publicApp)
  })

  checkRouteAccess(routes)
  await app.ready()
  return app
}
