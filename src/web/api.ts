import type { FastifyPluginAsync } from 'fastify'
import { addBodyReaders } from './bodies.js'
import { addDecimalPoints } from './decimal-points.js'
import { addIdempotency } from './idempotency.js'
import { addWriteNotes } from './read-list.js'
import { aspectRoutes } from './routes/aspects.js'
import { commentRoutes } from './routes/comments.js'
import { contactRoutes } from './routes/contacts.js'
import { conversationRoutes } from './routes/conversations.js'
import { likeRoutes } from './routes/likes.js'
import { notificationRoutes } from './routes/notifications.js'
import { photoRoutes } from './routes/photos.js'
import { postInteractionRoutes } from './routes/post-interactions.js'
import { postRoutes } from './routes/posts.js'
import { reportRoutes } from './routes/reports.js'
import { reshareRoutes } from './routes/reshares.js'
import { searchRoutes } from './routes/search.js'
import { searchPostsRoutes } from './routes/search-posts.js'
import { streamingRoutes } from './routes/streaming.js'
import { streamRoutes } from './routes/streams.js'
import { tagFollowingRoutes } from './routes/tag-followings.js'
import { userRoutes } from './routes/user.js'
import { usersRoutes } from './routes/users.js'
import { addValidation } from './validation.js'
import { addWriteLimit } from './write-limit.js'

/** The client API. What is below `/api/v1` reads bodies and values in one way; other parts of the pod have their own. */
export const apiRoutes: FastifyPluginAsync = async (app) => {
  addWriteLimit(app)
  await addBodyReaders(app)
  addValidation(app)
  addDecimalPoints(app)
  addIdempotency(app)
  addWriteNotes(app)
  await app.register(userRoutes)
  await app.register(usersRoutes)
  await app.register(commentRoutes)
  await app.register(reportRoutes)
  await app.register(postInteractionRoutes)
  await app.register(conversationRoutes)
  await app.register(notificationRoutes)
  await app.register(aspectRoutes)
  await app.register(contactRoutes)
  await app.register(postRoutes)
  await app.register(photoRoutes)
  await app.register(likeRoutes)
  await app.register(reshareRoutes)
  await app.register(streamRoutes)
  await app.register(tagFollowingRoutes)
  await app.register(searchRoutes)
  await app.register(searchPostsRoutes)
  await app.register(streamingRoutes)
}
