import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { listUserNotices } from '../../../domain/moderation/notices/user-notices.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentUserNotice } from '../../presenters/user-notices.js'
import { refTo } from '../../schemas/references.js'
import { UserNoticeSchema } from '../../schemas/user-notices.js'

/** Notices of the moderators to a user. */
export const userNoticeRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/user/notices',
    {
      schema: {
        operationId: 'listUserNotices',
        tags: ['Own profile'],
        summary: 'List notices of the moderators',
        description:
          'Warnings, hidden and removed content, and contacts lost because this pod has blocked another one; newest first. They are confirmed on the page `/settings/notices`.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(UserNoticeSchema), { description: 'The notices.' }) },
      },
      config: { scopes: ['profile:read_private'] },
    },
    async (request, reply) => {
      const page = await listUserNotices(request.services, request.viewer, readIdPaging(request.query))
      linkIdPages(request, reply, page)
      return page.items.map(presentUserNotice)
    },
  )
}
