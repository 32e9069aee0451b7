import type { FastifyPluginAsync } from 'fastify'
import { addBodyReaders } from './bodies.js'
import { addDecimalPoints } from './decimal-points.js'
import { commentRoutes } from './routes/comments.js'
import { conversationRoutes } from './routes/conversations.js'
import { notificationRoutes } from './routes/notifications.js'
import { postInteractionRoutes } from './routes/post-interactions.js'
import { reportRoutes } from './routes/reports.js'
import { userRoutes } from './routes/user.js'
import { usersRoutes } from './routes/users.js'
import { addValidation } from './validation.js'

/** The client API. What is below `/api/v1` reads bodies and values in one way; other parts of the pod have their own. */
export const apiRoutes: FastifyPluginAsync = async (app) => {
  await addBodyReaders(app)
  addValidation(app)
  addDecimalPoints(app)
  await app.register(userRoutes)
  await app.register(usersRoutes)
  await app.register(commentRoutes)
  await app.register(reportRoutes)
  await app.register(postInteractionRoutes)
  await app.register(conversationRoutes)
  await app.register(notificationRoutes)
}
