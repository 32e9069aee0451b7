import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  dropQuarantine,
  listQuarantine,
  readQuarantined,
  readQuarantinedPayload,
  releaseQuarantine,
  replayQuarantine,
} from '../../../domain/operations/quarantine.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentQuarantined } from '../../presenters/operations.js'
import { actionBody, actionRefusals } from '../../schemas/moderation/moderation.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { QuarantinedSchema } from '../../schemas/operations.js'
import { refTo } from '../../schemas/references.js'
import { RequestFault } from '../../server/request-faults.js'
import { getRequestActor } from './actor-of.js'
import { sendCountOrOperation } from './operations.js'

const tags = ['Quarantine']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const filter = {
  fault: Type.Optional(Type.String({ description: 'The fault of the messages.' })),
  host: Type.Optional(Type.String({ description: 'The claimed host of public messages.' })),
  state: Type.Optional(Type.Enum(['held', 'replaying', 'replayed'])),
}
const choiceFields = {
  ids: Type.Optional(
    Type.Array(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), {
      minItems: 1,
      maxItems: 1_000,
      description: 'The numbers of the messages; or at least one of the other fields.',
    }),
  ),
  ...filter,
}

const responses = (description: string) => ({
  200: Type.Object({ count: Type.Integer() }, { description }),
  202: refTo(OperationSchema, 'More than 1 000: the work in the background; `Location` leads to it.'),
})

/** Messages of other pods that were rejected. */
export const quarantineRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const scopes = ['administration'] as const
  const reading = { scopes, refusals: { role_needed: 403, quarantined_not_found: 404 } } as const

  app.get(
    '/quarantine',
    {
      schema: {
        operationId: 'listQuarantine',
        tags,
        summary: 'List rejected messages',
        description: 'A bounded sample of the last 14 days, latest first, without their content.',
        querystring: Type.Object({ ...filter, ...cursorPaging }),
        response: { 200: Type.Array(refTo(QuarantinedSchema), { description: 'The messages.' }) },
      },
      config: { scopes, refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { fault, host, state, ...paging } = request.query
      const actor = await getRequestActor(request, 'administration')
      const page = await listQuarantine(request.services, actor, { fault, host, state }, readIdPaging(paging))
      linkIdPages(request, reply, page)
      return page.items.map(presentQuarantined)
    },
  )

  app.get(
    '/quarantine/:id',
    {
      schema: {
        operationId: 'getQuarantinedMessage',
        tags,
        summary: 'Read a rejected message',
        description: 'Without its content.',
        params,
        response: { 200: refTo(QuarantinedSchema, 'The message.') },
      },
      config: reading,
    },
    async (request) =>
      presentQuarantined(
        await readQuarantined(request.services, await getRequestActor(request, 'administration'), request.params.id),
      ),
  )

  app.get(
    '/quarantine/:id/payload',
    {
      schema: {
        operationId: 'getQuarantinedPayload',
        tags,
        summary: 'Read the content of a rejected message',
        description: 'As it was received, a private message encrypted. The access is recorded in the audit log.',
        params,
        produces: ['application/octet-stream'],
        response: { 200: Type.String({ description: 'The bytes that were posted.' }) },
      },
      config: { ...reading, writes: true },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      const payload = await readQuarantinedPayload(request.services, actor, request.params.id)
      reply.type('application/octet-stream').header('content-disposition', 'attachment')
      return reply.send(Buffer.from(payload) as never) // bytes, which the response schema describes as a text
    },
  )

  app.post(
    '/quarantine/replay',
    {
      schema: {
        operationId: 'replayQuarantine',
        tags,
        summary: 'Receive rejected messages again',
        description: 'The messages run through the whole pipeline with the current rules; `result` has their end.',
        body: Type.Object({ ...choiceFields, reason: actionBody.reason }),
        response: responses('The messages that are replayed.'),
      },
      config: { scopes, refusals: { ...actionRefusals, operation_running: 409 } },
    },
    async (request, reply) => {
      requireChoice(request.body)
      const actor = await getRequestActor(request, 'administration')
      return sendCountOrOperation(reply, await replayQuarantine(request.services, actor, request.body))
    },
  )

  app.post(
    '/quarantine/release',
    {
      schema: {
        operationId: 'releaseQuarantine',
        tags,
        summary: 'Receive filtered messages without filters',
        description: 'Only messages that a filter has rejected; all other rules apply.',
        body: Type.Object({ ...choiceFields, reason: actionBody.reason }),
        response: responses('The messages that are replayed.'),
      },
      config: { scopes, refusals: { ...actionRefusals, operation_running: 409 } },
    },
    async (request, reply) => {
      requireChoice(request.body)
      const actor = await getRequestActor(request, 'administration')
      return sendCountOrOperation(reply, await releaseQuarantine(request.services, actor, request.body))
    },
  )

  app.post(
    '/quarantine/drop',
    {
      schema: {
        operationId: 'dropQuarantine',
        tags,
        summary: 'Delete rejected messages',
        description: 'They cannot be replayed afterwards.',
        body: Type.Object({
          ...choiceFields,
          reason: actionBody.reason,
          confirm: Type.Optional(Type.String({ description: 'The number of messages.' })),
        }),
        response: responses('The messages that were deleted.'),
      },
      config: { scopes, refusals: { ...actionRefusals, confirmation_needed: 409, operation_running: 409 } },
    },
    async (request, reply) => {
      requireChoice(request.body)
      const actor = await getRequestActor(request, 'administration')
      return sendCountOrOperation(reply, await dropQuarantine(request.services, actor, request.body))
    },
  )
}

/** Nothing changes all messages by mistake. */
function requireChoice({ ids, fault, host, state }: Readonly<Record<string, unknown>>): void {
  if ([ids, fault, host, state].some((part) => part !== undefined)) return
  throw new RequestFault(422, 'Choose messages by ids, fault, host or state.', { field: 'ids' })
}
