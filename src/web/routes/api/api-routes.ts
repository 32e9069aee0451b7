import type { FastifyPluginAsync } from 'fastify'
import { addDecimalPoints } from '../../api/decimal-points.js'
import { addIdempotency } from '../../api/idempotency.js'
import { addMissingObjectsFirst } from '../../api/missing-objects-first.js'
import { addWriteNotes } from '../../api/read-list.js'
import { addRemoteSearch } from '../../limits/remote-search.js'
import { addWriteLimit } from '../../limits/write-limit.js'
import { addRoutes } from '../../server/add-routes.js'
import { addBodyReaders } from '../../server/bodies.js'
import { addCompression } from '../../server/compression.js'
import { addEntityTags } from '../../server/entity-tags.js'
import { addValidation } from '../../server/schemas/validation.js'
import { aspectRoutes } from './aspects.js'
import { commentRoutes } from './comments.js'
import { contactRoutes } from './contacts.js'
import { conversationRoutes } from './conversations.js'
import { exportRoutes } from './exports.js'
import { importRoutes } from './imports.js'
import { likeRoutes } from './likes.js'
import { notificationRoutes } from './notifications.js'
import { photoRoutes } from './photos.js'
import { postDeliveryRoutes } from './post-deliveries.js'
import { postInteractionRoutes } from './post-interactions.js'
import { postRoutes } from './posts.js'
import { reportRoutes } from './reports.js'
import { reshareRoutes } from './reshares.js'
import { searchRoutes } from './search.js'
import { searchPostsRoutes } from './search-posts.js'
import { settingsApiRoutes } from './settings.js'
import { streamingRoutes } from './streaming.js'
import { streamRoutes } from './streams.js'
import { tagFollowingRoutes } from './tag-followings.js'
import { userRoutes } from './user.js'
import { userNoticeRoutes } from './user-notices.js'
import { usersRoutes } from './users.js'

/** The client API below `/api/v1`. The hooks and parsers added here apply to it alone. */
export const apiRoutes: FastifyPluginAsync = async (app) => {
  addWriteLimit(app)
  await addBodyReaders(app)
  addValidation(app)
  addDecimalPoints(app)
  addIdempotency(app)
  addWriteNotes(app)
  addEntityTags(app)
  addCompression(app)
  addRemoteSearch(app)
  addMissingObjectsFirst(app)
  await addRoutes(app, [
    userRoutes,
    userNoticeRoutes,
    settingsApiRoutes,
    usersRoutes,
    commentRoutes,
    reportRoutes,
    postInteractionRoutes,
    conversationRoutes,
    notificationRoutes,
    aspectRoutes,
    contactRoutes,
    postRoutes,
    postDeliveryRoutes,
    likeRoutes,
    reshareRoutes,
    streamRoutes,
    tagFollowingRoutes,
    searchRoutes,
    searchPostsRoutes,
    streamingRoutes,
    exportRoutes,
    importRoutes,
  ])
  await app.register(photoRoutes)
}
