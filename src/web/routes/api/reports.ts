import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { createReport } from '../../../domain/moderation/reports.js'
import { requirePostOrComment } from '../../../domain/posts/post-access.js'
import { missingFirst } from '../../api/missing-first.js'

const tags = ['Reports']
const description = 'Only the moderators of this pod see the report; its author and other pods do not.'
const ofPost = Type.Object({ post_guid: Type.String() })
const ofComment = Type.Object({ post_guid: Type.String(), comment_guid: Type.String() })
const body = Type.Object({ reason: Type.String({ description: 'Why you report it, 1 to 65 535 characters.' }) })
const response = { 204: Type.Null({ description: 'The report is stored.' }) }
const config = {
  scopes: ['interactions'],
  refusals: {
    post_not_found: 404,
    comment_not_found: 404,
    already_reported: 409,
    reason_invalid: 422,
    invalid: 422,
    malformed: 422,
  },
} as const

/** Reports of posts and comments to the moderators of this pod. */
export const reportRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const reportMissingTarget = missingFirst<Static<typeof ofPost> & Partial<Static<typeof ofComment>>>(
    ({ viewer, params: { post_guid: postGuid, comment_guid: commentGuid } }) =>
      requirePostOrComment(app.pod, viewer, { postGuid, commentGuid }),
  )

  app.post(
    '/posts/:post_guid/report',
    {
      ...reportMissingTarget,
      schema: {
        operationId: 'reportPost',
        tags,
        summary: 'Report a post',
        description,
        params: ofPost,
        body,
        response,
      },
      config,
    },
    async (request, reply) => {
      const { post_guid: postGuid } = request.params
      await createReport(request.pod, request.viewer, { postGuid, reason: request.body.reason })
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/comments/:comment_guid/report',
    {
      ...reportMissingTarget,
      schema: {
        operationId: 'reportComment',
        tags,
        summary: 'Report a comment',
        description,
        params: ofComment,
        body,
        response,
      },
      config,
    },
    async (request, reply) => {
      const { post_guid: postGuid, comment_guid: commentGuid } = request.params
      await createReport(request.pod, request.viewer, { postGuid, commentGuid, reason: request.body.reason })
      return reply.code(204).send(null)
    },
  )
}
