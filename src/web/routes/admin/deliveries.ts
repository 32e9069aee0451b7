import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readDeliveriesOfPost } from '../../../domain/outbound/post-deliveries.js'
import { presentDeliveryReport } from '../../presenters/deliveries.js'
import { Timestamp } from '../../schemas/formats.js'
import { nullable } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'

const Report = Type.Object({
  verb: Type.String({ description: '`create`, `retract` …' }),
  written_at: Timestamp,
  sent_to: Type.Integer({ description: 'Pods of a public message, people of a private one.' }),
  arrived: Type.Integer(),
  missing: Type.Array(
    Type.Object({
      state: Type.Enum(['waiting', 'dead']),
      pod: Type.String(),
      person: nullable(Type.String({ description: 'The recipient of a private message.' })),
      attempts: Type.Integer(),
      next_try_at: nullable(Timestamp),
      fault: nullable(Type.String()),
      status: nullable(Type.Integer({ description: 'The HTTP status of the last answer.' })),
    }),
  ),
  arrived_at: Type.Array(Type.Object({ pod: Type.String(), at: Timestamp }), {
    description: 'The pods that have it, in the order of arrival. Kept for 14 days.',
  }),
  skipped: Type.Array(Type.Object({ pod: Type.String(), reason: Type.Enum(['asleep', 'blocked']) }), {
    description: 'The pods it was not stored for.',
  }),
})

/** Where a post was sent. */
export const deliveryRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/posts/:guid/deliveries',
    {
      schema: {
        operationId: 'listDeliveriesOfPost',
        tags: ['Deliveries'],
        summary: 'List the deliveries of a post',
        description:
          'One entry for each message about a local post, the oldest first: where it has arrived, where it is missing, and which pods were left out. Kept for 14 days.',
        params: Type.Object({ guid: Type.String() }),
        response: { 200: Type.Array(Report, { description: 'The messages about the post.' }) },
      },
      config: { scopes: ['administration'], refusals: { role_needed: 403, post_not_found: 404 } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'administration')
      return (await readDeliveriesOfPost(request.services, actor, request.params.guid)).map(presentDeliveryReport)
    },
  )
}
