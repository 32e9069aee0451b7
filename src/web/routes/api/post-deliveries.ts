import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readOwnDeliveries } from '../../../domain/outbound/post-deliveries.js'
import { presentOwnDeliveries } from '../../presenters/deliveries.js'
import { Timestamp } from '../../schemas/formats.js'

const Pods = Type.Optional(Type.Array(Type.String(), { description: 'The pods by name; only of public posts.' }))

/** Where an own post was sent. */
export const postDeliveryRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/posts/:post_guid/deliveries',
    {
      schema: {
        operationId: 'listPostDeliveries',
        tags: ['Posts'],
        summary: 'List the deliveries of one of your posts',
        description:
          'An extension of this pod. One entry for each message about the post, the oldest first: to how many pods (or people, of a private post) it was sent, and how many have it. `skipped` are pods that were asleep or blocked. Messages that have arrived everywhere are forgotten after 14 days.',
        params: Type.Object({ post_guid: Type.String() }),
        response: {
          200: Type.Array(
            Type.Object({
              verb: Type.String({ description: '`create`, `retract` …' }),
              written_at: Timestamp,
              sent_to: Type.Integer(),
              arrived: Type.Integer(),
              waiting: Type.Integer(),
              refused: Type.Integer(),
              skipped: Type.Integer(),
              arrived_pods: Pods,
              waiting_pods: Pods,
              refused_pods: Pods,
              skipped_pods: Pods,
            }),
            { description: 'The messages about the post.' },
          ),
        },
      },
      config: { scopes: ['public:read'], refusals: { post_not_found: 404, not_author: 403 } },
    },
    async (request) =>
      presentOwnDeliveries(await readOwnDeliveries(request.services, request.viewer, request.params.post_guid)),
  )
}
