import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { mutePost, setPostHidden, subscribeToPost } from '../../../domain/interactions/post-interactions.js'
import { voteInPoll } from '../../../domain/interactions/votes.js'
import { requirePostOrComment } from '../../../domain/posts/post-access.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { BooleanField, readBoolean } from '../../schemas/booleans.js'
import { numberField } from '../../schemas/numbers.js'

const tags = ['Post interactions']
const params = Type.Object({ post_guid: Type.String() })
const invalidBody = { invalid: 422, malformed: 422 }

const AnswerId = numberField({ minimum: 1, digits: 15, description: 'The `id` of an answer from `poll.poll_answers`.' })

/** Subscribing to, muting and hiding a post, and voting in its poll. */
export const postInteractionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findPost = objectFinder<Static<typeof params>>((request) =>
    requirePostOrComment(request.services, request.viewer, { postGuid: request.params.post_guid }),
  )

  app.post(
    '/posts/:post_guid/subscribe',
    {
      schema: {
        operationId: 'subscribeToPost',
        tags,
        summary: 'Subscribe to a post',
        description:
          'You are notified of comments, as if you had commented. People who comment, like, vote or reshare are subscribed already.',
        params,
        response: { 204: Type.Null({ description: 'You are subscribed to the post.' }) },
      },
      config: { scopes: ['interactions'], refusals: { post_not_found: 404, already_subscribed: 409, ...invalidBody } },
    },
    async (request, reply) => {
      await subscribeToPost(request.services, request.viewer, request.params.post_guid)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/mute',
    {
      schema: {
        operationId: 'mutePost',
        tags,
        summary: 'Mute a post',
        description:
          'You get no more notifications about the post, even if it is yours or mentions you, until you comment on it, like it, vote or subscribe again.',
        params,
        response: { 204: Type.Null({ description: 'The post is muted.' }) },
      },
      config: { scopes: ['interactions'], refusals: { post_not_found: 404, not_subscribed: 410, ...invalidBody } },
    },
    async (request, reply) => {
      await mutePost(request.services, request.viewer, request.params.post_guid)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/hide',
    {
      schema: {
        operationId: 'hidePost',
        tags,
        summary: 'Hide or show a post',
        description: 'Hidden posts are left out of your streams and searches. Reading the post itself still works.',
        params,
        body: Type.Object({ hide: BooleanField }),
        response: { 204: Type.Null({ description: 'The post is hidden, or shown again.' }) },
      },
      config: {
        findObject: findPost,
        scopes: ['interactions'],
        refusals: { post_not_found: 404, already_hidden: 409, not_hidden: 410, ...invalidBody },
      },
    },
    async (request, reply) => {
      await setPostHidden(request.services, request.viewer, request.params.post_guid, readBoolean(request.body.hide))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/vote',
    {
      schema: {
        operationId: 'voteInPoll',
        tags,
        summary: 'Vote in the poll of a post',
        description: 'Once, for one answer. A vote on a reshare counts in the poll of the original post.',
        params,
        body: Type.Object({ poll_answer: AnswerId }),
        response: { 204: Type.Null({ description: 'Your vote is counted.' }) },
      },
      config: {
        findObject: findPost,
        scopes: ['interactions'],
        refusals: {
          post_not_found: 404,
          answer_not_found: 422,
          blocked_by_author: 422,
          already_voted: 410,
          ...invalidBody,
        },
      },
    },
    async (request, reply) => {
      const { post_guid: postGuid } = request.params
      await voteInPoll(request.services, request.viewer, { postGuid, answerId: Number(request.body.poll_answer) })
      return reply.code(204).send(null)
    },
  )
}
