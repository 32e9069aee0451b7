import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import {
  getNotification,
  listNotifications,
  markNotificationRead,
  setNotificationRead,
} from '../../../domain/notifications/notifications.js'
import { countUnread } from '../../../domain/notifications/unread-counts.js'
import { readDialect } from '../../api/dialect.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { sendUnreadCounts } from '../../api/unread-headers.js'
import { presentNotification, readNotificationType } from '../../presenters/notifications.js'
import { BooleanField, readBoolean } from '../../schemas/booleans.js'
import { Notification, NotificationTypeName } from '../../schemas/notifications.js'
import { onlyAfter, onlyUnread, readOnlyAfter, readOnlyUnread } from '../../schemas/polling-filters.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Notifications']
const scopes = ['notifications'] as const
const params = Type.Object({ notification_id: Type.String({ description: 'The guid of the notification.' }) })
const missing = { notification_not_found: 404 }

/** The viewer's notifications. */
export const notificationRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findNotification = objectFinder<Static<typeof params>>((request) =>
    getNotification(request.services, request.viewer, request.params.notification_id),
  )

  app.get(
    '/notifications',
    {
      schema: {
        operationId: 'listNotifications',
        tags,
        summary: 'List your notifications',
        description:
          'Newest first, read and unread. `only_after` selects notifications that were created or changed after that time: more people who do the same join an unread notification. `Unread-Notifications` counts your unread notifications, at most 1 000; `Unread-Conversations` and `Unread-Messages` likewise with the scope `conversations`. Single notifications carry these headers too.',
        querystring: Type.Object({
          ...timePaging,
          ...onlyAfter,
          ...onlyUnread,
          type: Type.Optional(NotificationTypeName),
        }),
        response: { 200: Type.Array(refTo(Notification), { description: 'Your notifications, newest first.' }) },
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
      const [notifications, counts] = await readList(request, (services) =>
        Promise.all([listNotifications(services, request.viewer, filter), countUnread(services, request.viewer)]),
      )
      sendUnreadCounts(reply, counts)
      linkTimePages(reply, page, notifications)
      return notifications.items.map((notification) => presentNotification(notification, readDialect(request)))
    },
  )

  app.get(
    '/notifications/:notification_id',
    {
      schema: {
        operationId: 'openNotification',
        tags,
        summary: 'Read a notification',
        description: 'Marks the notification as read.',
        params,
        response: { 200: refTo(Notification, 'The notification, now read.') },
      },
      config: { scopes, refusals: missing, writes: true },
    },
    async (request, reply) => {
      // HEAD is safe (RFC 9110, 9.2.1): it marks nothing as read.
      const read = request.method === 'HEAD' ? getNotification : markNotificationRead
      const notification = await read(request.services, request.viewer, request.params.notification_id)
      sendUnreadCounts(reply, await countUnread(request.services, request.viewer))
      return presentNotification(notification, readDialect(request))
    },
  )

  app.route({
    method: ['PATCH', 'PUT'],
    url: '/notifications/:notification_id',
    schema: {
      operationId: 'markNotification',
      tags,
      summary: 'Mark a notification as read or unread',
      description: 'Does not change the time of the notification.',
      params,
      body: Type.Object({ read: BooleanField }),
      response: { 200: refTo(Notification, 'The notification after the change.') },
    },
    config: { findObject: findNotification, scopes, refusals: { ...missing, invalid: 422 } },
    handler: async (request, reply) => {
      const isRead = readBoolean(request.body.read)
      const { notification_id: guid } = request.params
      const notification = await setNotificationRead(request.services, request.viewer, guid, { read: isRead })
      sendUnreadCounts(reply, await countUnread(request.services, request.viewer))
      return presentNotification(notification, readDialect(request))
    },
  })
}
