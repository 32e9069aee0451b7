import type { FastifyPluginAsync } from 'fastify'
import { addBodyReaders } from './bodies.js'
import { userRoutes } from './routes/user.js'
import { addValidation } from './validation.js'

/** The client API. What is below `/api/v1` reads bodies and values in one way; other parts of the pod have their own. */
export const apiRoutes: FastifyPluginAsync = async (app) => {
  await addBodyReaders(app)
  addValidation(app)
  await app.register(userRoutes)
}
