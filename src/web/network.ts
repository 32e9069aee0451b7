import type { FastifyPluginAsync } from 'fastify'
import { discoveryRoutes } from './routes/discovery.js'
import { fetchRoutes } from './routes/fetch.js'
import { linkRoutes } from './routes/links.js'
import { nodeInfoRoutes } from './routes/node-info.js'
import { personPageRoutes } from './routes/person-pages.js'
import { postPageRoutes } from './routes/post-pages.js'
import { uploadRoutes } from './routes/uploads.js'

/** What everybody may ask for: other pods, and people who followed a link. */
export const networkRoutes: FastifyPluginAsync = async (app) => {
  await app.register(discoveryRoutes)
  await app.register(nodeInfoRoutes)
  await app.register(fetchRoutes)
  await app.register(personPageRoutes)
  await app.register(postPageRoutes)
  await app.register(linkRoutes)
  await app.register(uploadRoutes)
}
