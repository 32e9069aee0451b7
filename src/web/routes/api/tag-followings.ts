import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { followTag, listFollowedTags, unfollowTag } from '../../../domain/streams/tag-followings.js'
import { readList } from '../../api/read-list.js'

const tags = ['Tags']

/** Tags that the viewer follows: public posts with one of them are in the main stream. */
export const tagFollowingRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/tag_followings',
    {
      schema: {
        operationId: 'listTagFollowings',
        tags,
        summary: 'List the tags that you follow',
        description: 'All of them, sorted, without `#`.',
        response: { 200: Type.Array(Type.String(), { description: 'The tags that you follow.' }) },
      },
      config: { scopes: ['tags:read'] },
    },
    async (request) => [...(await readList(request, (services) => listFollowedTags(services, request.viewer)))],
  )

  app.post(
    '/tag_followings',
    {
      schema: {
        operationId: 'followTag',
        tags,
        summary: 'Follow a tag',
        description: 'Public posts with this tag appear in your main stream.',
        body: Type.Object({
          name: Type.String({
            description:
              'With or without `#`. Lower-cased; spaces and punctuation are removed; then 1 to 255 characters.',
          }),
        }),
        response: { 204: Type.Null({ description: 'You follow the tag.' }) },
      },
      config: {
        scopes: ['tags:modify'],
        refusals: {
          tag_invalid: { status: 422, field: 'name' },
          already_followed: 409,
          too_many_tags: 422,
          invalid: 422,
        },
      },
    },
    async (request, reply) => {
      await followTag(request.services, request.viewer, request.body.name)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/tag_followings/:name',
    {
      schema: {
        operationId: 'unfollowTag',
        tags,
        summary: 'Unfollow a tag',
        description: 'The tag is percent-encoded in the path.',
        params: Type.Object({ name: Type.String() }),
        response: { 204: Type.Null({ description: 'You no longer follow the tag.' }) },
      },
      config: { scopes: ['tags:modify'], refusals: { not_followed: 410 } },
    },
    async (request, reply) => {
      await unfollowTag(request.services, request.viewer, request.params.name)
      return reply.code(204).send(null)
    },
  )
}
