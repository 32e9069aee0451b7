import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { requireTarget } from '../../../domain/accounts/access.js'
import { hide, mute, subscribe } from '../../../domain/interactions/post-interactions.js'
import { vote } from '../../../domain/interactions/votes.js'
import { missingFirst } from '../../api/missing-first.js'
import { BooleanField, readBoolean } from '../../schemas/booleans.js'
import { numberField } from '../../schemas/numbers.js'

const tags = ['Post interactions']
const params = Type.Object({ post_guid: Type.String() })
const unreadable = { invalid: 422, malformed: 422 }

const AnswerId = numberField({ minimum: 1, digits: 15, description: 'The `id` of an answer of the poll.' })

/** What somebody wants to hear and see of a post, and what they choose in its poll. */
export const postInteractionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const postFirst = missingFirst<Static<typeof params>>((request) =>
    requireTarget(app.pod, request.viewer, { postGuid: request.params.post_guid }),
  )

  app.post(
    '/posts/:post_guid/subscribe',
    {
      schema: {
        operationId: 'subscribeToPost',
        tags,
        summary: 'Hear of a post',
        description:
          'You are told what happens under it, as if you had commented on it. Whoever comments, likes, votes or reshares is subscribed already.',
        params,
        response: { 204: Type.Null({ description: 'Subscribed.' }) },
      },
      config: { scopes: ['interactions'], refusals: { post_not_found: 404, already_subscribed: 409, ...unreadable } },
    },
    async (request, reply) => {
      await subscribe(app.pod, request.viewer, request.params.post_guid)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/mute',
    {
      schema: {
        operationId: 'mutePost',
        tags,
        summary: 'Hear no more of a post',
        description: 'Also where it is yours, or names you. It lasts until you do something under the post again.',
        params,
        response: { 204: Type.Null({ description: 'Muted.' }) },
      },
      config: { scopes: ['interactions'], refusals: { post_not_found: 404, not_subscribed: 410, ...unreadable } },
    },
    async (request, reply) => {
      await mute(app.pod, request.viewer, request.params.post_guid)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/hide',
    {
      ...postFirst,
      schema: {
        operationId: 'hidePost',
        tags,
        summary: 'Hide a post, or show it again',
        description: 'Your streams and your searches leave it out. Whoever asks for the post itself still gets it.',
        params,
        body: Type.Object({ hide: BooleanField }),
        response: { 204: Type.Null({ description: 'Hidden, or shown again.' }) },
      },
      config: {
        scopes: ['interactions'],
        refusals: { post_not_found: 404, already_hidden: 409, not_hidden: 410, ...unreadable },
      },
    },
    async (request, reply) => {
      await hide(app.pod, request.viewer, request.params.post_guid, readBoolean(request.body.hide))
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/posts/:post_guid/vote',
    {
      ...postFirst,
      schema: {
        operationId: 'voteInPoll',
        tags,
        summary: 'Vote in the poll of a post',
        description: 'Once, for one answer. Under a reshare it is a vote in the poll of what it shows.',
        params,
        body: Type.Object({ poll_answer: AnswerId }),
        response: { 204: Type.Null({ description: 'Voted.' }) },
      },
      config: {
        scopes: ['interactions'],
        refusals: {
          post_not_found: 404,
          answer_not_found: 422,
          blocked_by_author: 422,
          already_voted: 410,
          ...unreadable,
        },
      },
    },
    async (request, reply) => {
      const { post_guid: postGuid } = request.params
      await vote(app.pod, request.viewer, { postGuid, answerId: Number(request.body.poll_answer) })
      return reply.code(204).send(null)
    },
  )
}
