import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { followTag, listFollowedTags, unfollowTag } from '../../../domain/streams/tag-followings.js'
import { readList } from '../../api/read-list.js'

const tags = ['Tags']

/** What somebody wants to see, whoever writes about it. */
export const tagFollowingRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/tag_followings',
    {
      schema: {
        operationId: 'listTagFollowings',
        tags,
        summary: 'List the tags you follow',
        description: 'All of them, in order, without `#`.',
        response: { 200: Type.Array(Type.String()) },
      },
      config: { scopes: ['tags:read'] },
    },
    async (request) => [...(await readList(request, (pod) => listFollowedTags(pod, request.viewer)))],
  )

  app.post(
    '/tag_followings',
    {
      schema: {
        operationId: 'followTag',
        tags,
        summary: 'Follow a tag',
        description: 'Your main stream has the public posts with this tag from now on.',
        body: Type.Object({
          name: Type.String({
            description: 'With or without `#`; in lower case and without blanks and punctuation 1 to 255 characters.',
          }),
        }),
        response: { 204: Type.Null({ description: 'Followed.' }) },
      },
      config: {
        scopes: ['tags:modify'],
        refusals: { tag_invalid: { status: 422, field: 'name' }, already_followed: 409, invalid: 422 },
      },
    },
    async (request, reply) => {
      await followTag(app.pod, request.viewer, request.body.name)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/tag_followings/:name',
    {
      schema: {
        operationId: 'unfollowTag',
        tags,
        summary: 'Follow a tag no longer',
        description: 'Percent-encoded.',
        params: Type.Object({ name: Type.String() }),
        response: { 204: Type.Null({ description: 'No longer followed.' }) },
      },
      config: { scopes: ['tags:modify'], refusals: { not_followed: 410 } },
    },
    async (request, reply) => {
      await unfollowTag(app.pod, request.viewer, request.params.name)
      return reply.code(204).send(null)
    },
  )
}
