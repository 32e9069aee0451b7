import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { removeContent } from '../../../domain/moderation/remove-content.js'
import { ActionSummary, actionBody, actionRefusals, Changed } from '../../schemas/moderation.js'
import { actorOf } from './actor-of.js'

const CONTENT = { posts: 'post', comments: 'comment' } as const

/** Actions on posts and comments. */
export const contentRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const [path, type] of Object.entries(CONTENT)) {
    app.post(
      `/${path}/:guid/remove`,
      {
        schema: {
          operationId: type === 'post' ? 'removePost' : 'removeComment',
          tags: ['Content'],
          summary: `Remove a ${type}`,
          description: `Final. A local author's ${type}, and a comment on a post of a local author, is retracted on other pods too; other content is removed from this pod and kept away. Private content must have been reported.`,
          params: Type.Object({ guid: Type.String() }),
          body: Type.Object(actionBody),
          response: {
            200: Type.Object(
              {
                action: Type.Optional(ActionSummary),
                changed: Changed,
                retracted: Type.Boolean({ description: 'A retraction is sent to other pods.' }),
              },
              { description: `The ${type} is removed.` },
            ),
          },
        },
        config: {
          scopes: ['moderation'],
          refusals: {
            ...actionRefusals,
            ...(type === 'post' ? { post_not_found: 404 } : { comment_not_found: 404 }),
            own_account: 422,
            target_outranks: 403,
          },
        },
      },
      async (request) => {
        const { reason, case_id: caseId } = request.body
        const target = { type, guid: request.params.guid }
        return removeContent(request.pod, await actorOf(request, 'moderation'), target, { reason, caseId })
      },
    )
  }
}
