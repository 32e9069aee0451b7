import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Actor } from '../../../domain/moderation/actor.js'
import type { ContentTarget } from '../../../domain/moderation/find-content.js'
import { hideContent } from '../../../domain/moderation/hide-content.js'
import { findContentState, readRecordedContent } from '../../../domain/moderation/read-content.js'
import { purgeContent, removeContent } from '../../../domain/moderation/remove-content.js'
import { presentContent } from '../../presenters/moderation.js'
import {
  actionBody,
  actionRefusals,
  actionResponse,
  ContentSchema,
  contentResponse,
  silent,
  targetRefusals,
  until,
} from '../../schemas/moderation/moderation.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { getRequestActor } from './actor-of.js'

const CONTENT = { posts: 'post', comments: 'comment' } as const
const params = Type.Object({ guid: Type.String() })

/** Actions on posts and comments. */
export const contentRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const [path, type] of Object.entries(CONTENT)) {
    const name = type === 'post' ? 'Post' : 'Comment'
    const notFound = type === 'post' ? { post_not_found: 404 } : { comment_not_found: 404 }
    const tags = ['Content']

    app.get(
      `/${path}/:guid`,
      {
        schema: {
          operationId: `getModerated${name}`,
          tags,
          summary: `Read a ${type} as a moderator`,
          description: `Also a hidden ${type}. Private content must have been reported; reading it is recorded in the audit log.`,
          params,
          response: { 200: refTo(ContentSchema, `The ${type}.`) },
        },
        config: { scopes: ['moderation'], writes: true, refusals: { role_needed: 403, ...notFound } },
      },
      async (request) => {
        const target = { type, guid: request.params.guid }
        const actor = await getRequestActor(request, 'moderation')
        return presentContent(target, await readRecordedContent(request.services, actor, target), app.services.config)
      },
    )

    app.post(
      `/${path}/:guid/hide`,
      {
        schema: {
          operationId: `hide${name}ForEveryone`,
          tags,
          summary: `Hide a ${type}`,
          description: `The ${type} stays in the database and is shown to its author and to moderators only. Nothing is sent to other pods. Private content must have been reported.`,
          params,
          body: Type.Object({ ...actionBody, until, silent }),
          response: { 200: Type.Object(contentResponse, { description: `The ${type} is hidden.` }) },
        },
        config: {
          scopes: ['moderation'],
          refusals: { ...actionRefusals, ...targetRefusals, ...notFound, until_invalid: 422 },
        },
      },
      async (request) => {
        const { reason, case_id: caseId, silent: isSilent, until: end } = request.body
        const target = { type, guid: request.params.guid }
        const options = {
          reason,
          caseId,
          withoutNotice: isSilent,
          until: end === undefined ? undefined : readTime('until', end),
        }
        const actor = await getRequestActor(request, 'moderation')
        return withContent(request, actor, target, await hideContent(request.services, actor, target, options))
      },
    )

    app.post(
      `/${path}/:guid/remove`,
      {
        schema: {
          operationId: `remove${name}`,
          tags,
          summary: `Remove a ${type}`,
          description: `A local author's ${type}, and a comment on a post of a local author, is retracted on other pods too, which is final. Other content is hidden and kept away until the undo. Private content must have been reported.`,
          params,
          body: Type.Object({ ...actionBody, silent }),
          response: {
            200: Type.Object(
              { ...contentResponse, retracted: Type.Boolean({ description: 'A retraction is sent to other pods.' }) },
              { description: `The ${type} is removed.` },
            ),
          },
        },
        config: { scopes: ['moderation'], refusals: { ...actionRefusals, ...targetRefusals, ...notFound } },
      },
      async (request) => {
        const { reason, case_id: caseId, silent: isSilent } = request.body
        const target = { type, guid: request.params.guid }
        const options = { reason, caseId, withoutNotice: isSilent }
        const actor = await getRequestActor(request, 'moderation')
        return withContent(request, actor, target, await removeContent(request.services, actor, target, options))
      },
    )

    app.post(
      `/${path}/:guid/purge`,
      {
        schema: {
          operationId: `purge${name}`,
          tags,
          summary: `Delete a remote ${type} permanently`,
          description: `Deletes the ${type} with everything below it. It is not accepted again.`,
          params,
          body: Type.Object({
            ...actionBody,
            confirm: Type.Optional(Type.String({ description: `The guid of the ${type}.` })),
          }),
          response: { 200: Type.Object(actionResponse, { description: `The ${type} is deleted.` }) },
        },
        config: {
          scopes: ['administration'],
          refusals: { ...actionRefusals, ...notFound, not_remote: 422, confirmation_needed: 409 },
        },
      },
      async (request) => {
        const { reason, case_id: caseId, confirm } = request.body
        const target = { type, guid: request.params.guid }
        const actor = await getRequestActor(request, 'administration')
        return purgeContent(request.services, actor, target, { reason, caseId, confirm })
      },
    )
  }
}

/** The answer to an action on content, with the content as it is now; it may be deleted. The text of private content is not shown. */
async function withContent<Outcome extends object>(
  { services }: FastifyRequest,
  actor: Actor,
  target: ContentTarget,
  outcome: Outcome,
) {
  const content = await findContentState(services, actor, target)
  if (content === undefined) return outcome
  const { text: _text, ...rest } = presentContent(target, content, services.config)
  return { ...rest, ...outcome }
}
