import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { MODERATION_LIMITS } from '../../../domain/moderation/limits.js'
import {
  createMessageReport,
  createPersonReport,
  createReport,
  listOwnReports,
} from '../../../domain/moderation/reports.js'
import { requirePostOrComment } from '../../../domain/posts/post-access.js'
import { Refusal } from '../../../domain/refusals.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { tooMany } from '../../limits/rate-limit.js'
import { presentOwnReport } from '../../presenters/moderation.js'
import { OwnReportSchema } from '../../schemas/moderation/moderation.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Reports']
const description = 'Only the moderators of this pod see the report; its author and other pods do not.'
const ofPost = Type.Object({ post_guid: Type.String() })
const ofComment = Type.Object({ post_guid: Type.String(), comment_guid: Type.String() })
const body = Type.Object({ reason: Type.String({ description: 'Why you report it, 1 to 65 535 characters.' }) })
const response = { 204: Type.Null({ description: 'The report is stored.' }) }
const ofAnyThing = { already_reported: 409, reason_invalid: 422, invalid: 422, malformed: 422 } as const
const config = {
  scopes: ['interactions'],
  refusals: { ...ofAnyThing, post_not_found: 404, comment_not_found: 404 },
} as const

async function answerAsRateLimit(report: Promise<void>): Promise<void> {
  try {
    await report
  } catch (error) {
    const isTooMany = error instanceof Refusal && error.reason === 'too_many_reports'
    throw isTooMany ? tooMany(MODERATION_LIMITS.reportsPerSeconds) : error
  }
}

/** Reports of posts, comments, people and messages to the moderators of this pod. */
export const reportRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findTarget = objectFinder<Static<typeof ofPost> & Partial<Static<typeof ofComment>>>(
    ({ services, viewer, params: { post_guid: postGuid, comment_guid: commentGuid } }) =>
      requirePostOrComment(services, viewer, { postGuid, commentGuid }),
  )

  app.post(
    '/posts/:post_guid/report',
    {
      schema: {
        operationId: 'reportPost',
        tags,
        summary: 'Report a post',
        description,
        params: ofPost,
        body,
        response,
      },
      config: { ...config, findObject: findTarget },
    },
    async (request, reply) => {
      const { post_guid: postGuid } = request.params
      await answerAsRateLimit(createReport(request.services, request.viewer, { postGuid, reason: request.body.reason }))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/comments/:comment_guid/report',
    {
      schema: {
        operationId: 'reportComment',
        tags,
        summary: 'Report a comment',
        description,
        params: ofComment,
        body,
        response,
      },
      config: { ...config, findObject: findTarget },
    },
    async (request, reply) => {
      const { post_guid: postGuid, comment_guid: commentGuid } = request.params
      await answerAsRateLimit(
        createReport(request.services, request.viewer, { postGuid, commentGuid, reason: request.body.reason }),
      )
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/users/:person_guid/report',
    {
      schema: {
        operationId: 'reportPerson',
        tags,
        summary: 'Report a person',
        description,
        params: Type.Object({ person_guid: Type.String() }),
        body,
        response,
      },
      config: {
        scopes: ['interactions'],
        refusals: { ...ofAnyThing, person_not_found: 404, own_person: 422 },
      },
    },
    async (request, reply) => {
      const { person_guid: personGuid } = request.params
      await answerAsRateLimit(
        createPersonReport(request.services, request.viewer, { personGuid, reason: request.body.reason }),
      )
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/conversations/:guid/messages/:message_guid/report',
    {
      schema: {
        operationId: 'reportMessage',
        tags,
        summary: 'Report a message',
        description: `The moderators see this message only, not the rest of the conversation. ${description}`,
        params: Type.Object({ guid: Type.String(), message_guid: Type.String() }),
        body,
        response,
      },
      config: {
        scopes: ['conversations'],
        refusals: { ...ofAnyThing, conversation_not_found: 404, message_not_found: 404, own_person: 422 },
      },
    },
    async (request, reply) => {
      const { guid: conversationGuid, message_guid: messageGuid } = request.params
      const report = { conversationGuid, messageGuid, reason: request.body.reason }
      await answerAsRateLimit(createMessageReport(request.services, request.viewer, report))
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/user/reports',
    {
      schema: {
        operationId: 'listOwnReports',
        tags,
        summary: 'List your reports',
        description: 'What you have reported, newest first, and whether the moderators have decided.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(OwnReportSchema), { description: 'Your reports.' }) },
      },
      config: { scopes: ['interactions'] },
    },
    async (request, reply) => {
      const page = await listOwnReports(request.services, request.viewer, readIdPaging(request.query))
      linkIdPages(request, reply, page)
      return page.items.map(presentOwnReport)
    },
  )
}
