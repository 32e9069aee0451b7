import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { findOwnProfile } from '../../domain/people.js'
import { presentOwnProfile } from '../presenters/people.js'
import { OwnProfile } from '../schemas.js'

export const userRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/user',
    {
      schema: {
        operationId: 'getOwnProfile',
        tags: ['Own profile'],
        summary: 'Read your own profile',
        description:
          'The profile of the person the token belongs to. Birthday, gender, location and bio are null unless the token has the scope `profile:read_private`, or the person shows them to everybody (`show_profile_info`).',
        response: { 200: OwnProfile },
      },
      config: { scopes: ['profile'] },
    },
    async (request) => presentOwnProfile(await findOwnProfile(app.pod, request.viewer), app.pod.config.url),
  )
}
