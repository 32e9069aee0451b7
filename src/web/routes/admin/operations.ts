import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readOperation } from '../../../domain/operations/long-operations.js'
import { presentOperation } from '../../presenters/operations.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { refTo } from '../../schemas/references.js'
import { findRequestActor } from './actor-of.js'

/** Long work that was started by another request. */
export const operationRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/operations/:id',
    {
      schema: {
        operationId: 'getOperation',
        tags: ['Operations'],
        summary: 'Read the progress of long work',
        description: 'The `Location` of the request that has started the work leads here.',
        params: Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }),
        response: { 200: refTo(OperationSchema, 'The operation.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, operation_not_found: 404 } },
    },
    async (request) =>
      presentOperation(await readOperation(app.pod, await findRequestActor(request, 'moderation'), request.params.id)),
  )
}
