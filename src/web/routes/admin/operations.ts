import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { type BackgroundTask, getBackgroundTask } from '../../../domain/operations/background-tasks.js'
import { presentOperation } from '../../presenters/operations.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { refTo } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'

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
      presentOperation(
        await getBackgroundTask(request.services, await getRequestActor(request, 'moderation'), request.params.id),
      ),
  )
}

/** Answers 202 with an operation that continues the work of the request. */
export function sendOperation(reply: FastifyReply, task: BackgroundTask) {
  reply.code(202).header('location', `/api/admin/v1/operations/${task.id}`)
  return presentOperation(task)
}

/** The number of changed rows, or the operation that changes them. */
interface CountOrOperation {
  readonly count: number
  readonly task?: BackgroundTask | undefined
}

export function sendCountOrOperation(reply: FastifyReply, { count, task }: CountOrOperation) {
  return task === undefined ? { count } : sendOperation(reply, task)
}
