import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readTrace } from '../../../domain/operations/traces.js'
import { presentTraceStep } from '../../presenters/operations.js'
import { TraceStepSchema } from '../../schemas/operations.js'
import { refTo } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'

/** The consequences of a request or a received message. */
export const traceRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/traces/:id',
    {
      schema: {
        operationId: 'getTrace',
        tags: ['Machines'],
        summary: 'Follow a request',
        description:
          'The rows that a request of a client or a message of another pod has caused, in the order of the pipeline: waiting, stored, notifications, sent messages, deliveries, audit entries.',
        params: Type.Object({ id: Type.String({ description: 'The `X-Request-Id` of the response.' }) }),
        response: {
          200: Type.Object(
            { id: Type.String(), steps: Type.Array(refTo(TraceStepSchema)) },
            { description: 'What belongs to the request.' },
          ),
        },
      },
      config: { scopes: ['administration'], refusals: { role_needed: 403, trace_not_found: 404 } },
    },
    async (request) => {
      const { id } = request.params
      const steps = await readTrace(request.services, await getRequestActor(request, 'administration'), id)
      return { id, steps: steps.map(presentTraceStep) }
    },
  )
}
