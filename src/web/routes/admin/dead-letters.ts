import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { formatDeadLetterView, readDeadLetterPayload } from '../../../domain/operations/dead-letter-view.js'
import {
  dropConfirmed,
  groupDeadLetters,
  listDeadLetterPage,
  readDeadLetter,
  replayAudited,
} from '../../../domain/operations/dead-letters.js'
import type { DeadLetterFilter, DeadLetterPosition } from '../../../jobs/dead-letters/dead-letter.js'
import { DEAD_LETTER_GROUPS } from '../../../jobs/dead-letters/dead-letter-rows.js'
import { QUEUES } from '../../../jobs/queues/queue-names.js'
import { cursorPaging, readCursor } from '../../api/cursor-paging.js'
import { createPageLinks, sendLinks } from '../../api/page-links.js'
import { presentDeadLetter } from '../../presenters/operations.js'
import { actionBody, actionRefusals } from '../../schemas/moderation/moderation.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { DeadLetterSchema } from '../../schemas/operations.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { RequestFault } from '../../server/request-faults.js'
import { getRequestActor } from './actor-of.js'
import { sendCountOrOperation } from './operations.js'

const tags = ['Dead letters']

const filterFields = {
  queue: Type.Optional(Type.Enum([...QUEUES])),
  fault: Type.Optional(Type.String({ description: 'The error of the last attempt.' })),
  pod: Type.Optional(Type.String({ description: 'The host of the other pod, where it is known.' })),
  entity: Type.Optional(Type.String({ description: 'The type of the entity, where it is known.' })),
  since: Type.Optional(Type.String({ description: 'Given up from this time on.' })),
  until: Type.Optional(Type.String({ description: 'Given up before this time.' })),
}
const FilterFields = Type.Object(filterFields)

const Group = Type.Enum([...DEAD_LETTER_GROUPS])

/** Dead letters that are chosen by their ids. */
const IDS = 100

const choice = Type.Object({
  id: Type.Optional(Type.String({ description: 'One dead letter; or at least one of the other fields.' })),
  ids: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: IDS, description: 'Several dead letters.' })),
  ...filterFields,
  reason: actionBody.reason,
})

const responses = {
  200: Type.Object({ count: Type.Integer() }, { description: 'The dead letters that were changed.' }),
  202: refTo(OperationSchema, 'More than 1 000: the work in the background; `Location` leads to it.'),
}

/** Work that was given up. */
export const deadLetterRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const scopes = ['administration'] as const

  app.get(
    '/dead_letters',
    {
      schema: {
        operationId: 'listDeadLetters',
        tags,
        summary: 'List or count dead letters',
        description:
          'Jobs and deliveries that were given up, latest first, without their content. With `group_by` counts by this property.',
        querystring: Type.Object({ ...filterFields, group_by: Type.Optional(Group), ...cursorPaging }),
        response: {
          200: Type.Union(
            [
              Type.Array(refTo(DeadLetterSchema)),
              Type.Object({
                groups: Type.Array(
                  Type.Object({
                    value: Type.Unsafe<string | null>({
                      type: ['string', 'null'],
                      description: 'Null: the property is unknown.',
                    }),
                    count: Type.Integer(),
                  }),
                ),
              }),
            ],
            { description: 'The dead letters, or the counts.' },
          ),
        },
      },
      config: { scopes, refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { group_by: by, cursor, per_page, ...fields } = request.query
      const actor = await getRequestActor(request, 'administration')
      const filter = filterOf(fields)
      if (by !== undefined) return { groups: [...(await groupDeadLetters(request.services, actor, filter, by))] }
      const { limit, groups } = readCursor(
        { ...(cursor !== undefined && { cursor }), ...(per_page !== undefined && { per_page }) },
        CURSOR,
      )
      const [, direction, ms, id = ''] = groups ?? []
      const position = groups === undefined ? undefined : { failedAt: new Date(Number(ms)), id }
      const page = direction === 'a' ? { after: position } : { before: position }
      const deadLetters = await listDeadLetterPage(request.services, actor, filter, { ...page, limit })
      const linkTo = createPageLinks(request)
      const [first, last] = [deadLetters.items.at(0), deadLetters.items.at(-1)]
      sendLinks(reply, {
        next: last && deadLetters.hasOlder ? linkTo({ cursor: `b${cursorOf(last)}` }) : undefined,
        previous: first && deadLetters.hasNewer ? linkTo({ cursor: `a${cursorOf(first)}` }) : undefined,
      })
      return deadLetters.items.map(presentDeadLetter)
    },
  )

  app.get(
    '/dead_letters/:id',
    {
      schema: {
        operationId: 'getDeadLetter',
        tags,
        summary: 'Read a dead letter',
        description: 'Without its content.',
        params: Type.Object({ id: Type.String({ description: 'A slash in it is written as `%2F`.' }) }),
        response: { 200: refTo(DeadLetterSchema, 'The dead letter.') },
      },
      config: { scopes, refusals: { role_needed: 403, dead_letter_not_found: 404 } },
    },
    async (request) =>
      presentDeadLetter(
        await readDeadLetter(request.services, await getRequestActor(request, 'administration'), request.params.id),
      ),
  )

  app.get(
    '/dead_letters/:id/payload',
    {
      schema: {
        operationId: 'getDeadLetterPayload',
        tags,
        summary: 'Read the content of a dead letter',
        description:
          'As text: facts, and the XML of a public entity, whose long texts are cut. Of private content only the recipient, the size and the digest. The audit log records the access.',
        params: Type.Object({ id: Type.String({ description: 'A slash in it is written as `%2F`.' }) }),
        produces: ['application/octet-stream'],
        response: { 200: Type.String({ description: 'The content.' }) },
      },
      config: { scopes, writes: true, refusals: { role_needed: 403, dead_letter_not_found: 404 } },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      const view = await readDeadLetterPayload(request.services, actor, request.params.id)
      reply.type('application/octet-stream').header('content-disposition', 'attachment')
      return reply.send(Buffer.from(formatDeadLetterView(view)) as never) // bytes, which the response schema describes as a text
    },
  )

  app.post(
    '/dead_letters/replay',
    {
      schema: {
        operationId: 'replayDeadLetters',
        tags,
        summary: 'Run dead letters again',
        description: 'With all their attempts. A job that runs twice has the effect of one run.',
        body: choice,
        response: responses,
      },
      config: { scopes, refusals: { ...actionRefusals, operation_running: 409 } },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      return sendCountOrOperation(reply, await replayAudited(request.services, actor, changeOf(request.body)))
    },
  )

  app.post(
    '/dead_letters/drop',
    {
      schema: {
        operationId: 'dropDeadLetters',
        tags,
        summary: 'Delete dead letters',
        description: 'They cannot be replayed afterwards.',
        body: Type.Object({
          ...choice.properties,
          confirm: Type.Optional(Type.String({ description: 'The number of dead letters.' })),
        }),
        response: responses,
      },
      config: { scopes, refusals: { ...actionRefusals, confirmation_needed: 409, operation_running: 409 } },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      const change = changeOf(request.body)
      return sendCountOrOperation(
        reply,
        await dropConfirmed(request.services, actor, { ...change, confirm: request.body.confirm }),
      )
    },
  )
}

/** Position before (`b`) or after (`a`) a time in milliseconds and an id. */
const CURSOR = /^([ab])([0-9]{1,15})\.([a-z-]+[-/][0-9A-Za-z_:-]{1,80})$/

function cursorOf({ failedAt, id }: DeadLetterPosition): string {
  return `${failedAt.getTime()}.${id}`
}

type Fields = Static<typeof FilterFields>

/** At least one field has to be given: nothing changes all dead letters by mistake. */
function changeOf({ id, ids = [], reason, ...fields }: Static<typeof choice>) {
  const allIds = id === undefined ? ids : [id, ...ids]
  const filter = { ...filterOf(fields), ...(allIds.length > 0 && { ids: allIds }) }
  if (Object.keys(filter).length === 0) {
    throw new RequestFault(422, 'Choose dead letters by id or by another field.', { field: 'ids' })
  }
  return { filter, reason }
}

function filterOf(fields: Fields): DeadLetterFilter {
  const { queue, fault, pod: host, entity, since, until } = fields
  return {
    ...(queue !== undefined && { queue }),
    ...(fault !== undefined && { fault }),
    ...(host !== undefined && { pod: host.toLowerCase() }),
    ...(entity !== undefined && { entity }),
    ...(since !== undefined && { since: readTime('since', since) }),
    ...(until !== undefined && { until: readTime('until', until) }),
  }
}
