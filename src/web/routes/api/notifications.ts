import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import {
  findNotification,
  findNotifications,
  markNotification,
  openNotification,
} from '../../../domain/notifications/notifications.js'
import { dialectOf } from '../../api/dialect.js'
import { missingFirst } from '../../api/missing-first.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentNotification, readNotificationType } from '../../presenters/notifications.js'
import { BooleanField, readBoolean } from '../../schemas/booleans.js'
import { refTo } from '../../schemas/common.js'
import { onlyAfter, onlyUnread, readOnlyAfter, readOnlyUnread } from '../../schemas/news-filters.js'
import { Notification, NotificationTypeName } from '../../schemas/notifications.js'

const tags = ['Notifications']
const scopes = ['notifications'] as const
const params = Type.Object({ notification_id: Type.String({ description: 'Its guid.' }) })
const missing = { notification_not_found: 404 }

/** What the viewer is told of what others do. */
export const notificationRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const ownNotification = missingFirst<Static<typeof params>>((request) =>
    findNotification(app.pod, request.viewer, request.params.notification_id),
  )

  app.get(
    '/notifications',
    {
      schema: {
        operationId: 'listNotifications',
        tags,
        summary: 'List your notifications',
        description:
          'The newest first, read or not. With `only_after` those that are new or to which something was added later: others who did the same join a notification that you have not read.',
        querystring: Type.Object({
          ...timePaging,
          ...onlyAfter,
          ...onlyUnread,
          type: Type.Optional(NotificationTypeName),
        }),
        response: { 200: Type.Array(refTo(Notification)) },
      },
      config: { scopes },
    },
    async (request, reply) => {
      const { type } = request.query
      const page = readTimePage(request)
      const filter = {
        ...page,
        ...readOnlyAfter(request.query),
        ...readOnlyUnread(request.query),
        ...(type !== undefined && { type: readNotificationType(type) }),
      }
      const notifications = await readList(request, (pod) => findNotifications(pod, request.viewer, filter))
      linkTimePages(request, reply, page, notifications)
      return notifications.items.map((notification) => presentNotification(notification, dialectOf(request)))
    },
  )

  app.get(
    '/notifications/:notification_id',
    {
      schema: {
        operationId: 'openNotification',
        tags,
        summary: 'Read a notification',
        description: 'Whoever asks for one has read it.',
        params,
        response: { 200: refTo(Notification) },
      },
      config: { scopes, refusals: missing, writes: true },
    },
    async (request) => {
      // HEAD is safe (RFC 9110, 9.2.1): it marks nothing as read.
      const read = request.method === 'HEAD' ? findNotification : openNotification
      const notification = await read(app.pod, request.viewer, request.params.notification_id)
      return presentNotification(notification, dialectOf(request))
    },
  )

  app.route({
    method: ['PATCH', 'PUT'],
    url: '/notifications/:notification_id',
    ...ownNotification,
    schema: {
      operationId: 'markNotification',
      tags,
      summary: 'Mark a notification as read or unread',
      description: 'Neither makes it any newer.',
      params,
      body: Type.Object({ read: BooleanField }),
      response: { 200: refTo(Notification) },
    },
    config: { scopes, refusals: { ...missing, invalid: 422 } },
    handler: async (request) => {
      const read = readBoolean(request.body.read)
      const { notification_id: guid } = request.params
      return presentNotification(await markNotification(app.pod, request.viewer, guid, { read }), dialectOf(request))
    },
  })
}
