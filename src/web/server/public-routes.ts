import type { FastifyPluginAsync } from 'fastify'
import { limitAddresses } from '../limits/address-limit.js'
import { type AnswerLookup, openAnonymousLookups } from '../limits/anonymous-lookups.js'
import { addNetworkAccess } from '../limits/network-access.js'
import { openPageCache, type PageCache } from '../pages/page-cache.js'
import { openPageRenderer, type PageRenderer } from '../pages/page-renderer.js'
import { discoveryRoutes } from '../routes/federation/discovery.js'
import { fetchRoutes } from '../routes/federation/fetch.js'
import { nodeInfoRoutes } from '../routes/federation/node-info.js'
import { linkRoutes } from '../routes/pages/links.js'
import { personPageRoutes } from '../routes/pages/person-pages.js'
import { postListPageRoutes } from '../routes/pages/post-list-pages.js'
import { postPageRoutes } from '../routes/pages/post-pages.js'
import { uploadRoutes } from '../routes/pages/uploads.js'
import { addRoutes } from './add-routes.js'
import { addCompression } from './compression.js'

declare module 'fastify' {
  interface FastifyInstance {
    readonly answerLookUp: AnswerLookup
    readonly publicPages: { readonly renderer: PageRenderer; readonly cache: PageCache }
  }
}

/** Public routes for other pods, and for people who follow a link. */
export const publicRoutes: FastifyPluginAsync = async (app) => {
  app.decorate('answerLookUp', openAnonymousLookups(app.services))
  await addRoutes(app, [discoveryRoutes, nodeInfoRoutes, fetchRoutes, linkRoutes, uploadRoutes])
  await app.register(publicPageRoutes)
}

/** Public pages are rendered outside the event loop, cached for seconds, and limited per network address. */
const publicPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const renderer = openPageRenderer(services)
  app.addHook('onClose', () => renderer.close())
  app.decorate('publicPages', { renderer, cache: openPageCache(() => services.now()) })
  addNetworkAccess(app)
  const { onRequest } = limitAddresses(services, 'pages')
  app.addHook('onRequest', onRequest)
  addCompression(app)
  await addRoutes(app, [personPageRoutes, postPageRoutes, postListPageRoutes])
}
