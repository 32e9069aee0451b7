import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { applyFilter } from '../../../domain/moderation/filters/apply-filter.js'
import { dryRunFilter } from '../../../domain/moderation/filters/dry-run.js'
import {
  addFilter,
  changeFilter,
  type FilterInput,
  type FilterOutcome,
  listModerationFilters,
  readModerationFilter,
  removeFilter,
} from '../../../domain/moderation/filters/filters.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentDryRun, presentFilter, presentFilterDetails } from '../../presenters/filters.js'
import {
  changedFilterBody,
  DryRunSchema,
  FilterDetailsSchema,
  FilterSchema,
  newFilterBody,
} from '../../schemas/moderation/filters.js'
import {
  ActionSummary,
  actionBody,
  actionRefusals,
  Changed,
  deletionFields,
  readDeletionReason,
} from '../../schemas/moderation/moderation.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { refTo } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'
import { sendOperation } from './operations.js'

const tags = ['Filters']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const { action: _ofFilter, ...filterFields } = FilterSchema.properties
/** The fields of the filter; what it does is in `filter`, because `action` is the recorded action. */
const changeResponse = (description: string) =>
  Type.Object(
    { ...filterFields, action: Type.Optional(ActionSummary), changed: Changed, filter: refTo(FilterSchema) },
    { description },
  )

const Complete = Type.Boolean({ description: 'False: older content of these days was not read.' })
const Applied = { action: Type.Optional(ActionSummary), changed: Changed, hits: Type.Integer(), complete: Complete }

const ChangedBody = Type.Object({ ...changedFilterBody, ...actionBody })

/** Filters of posts, comments, profiles and messages. */
export const filterRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const read = { scopes: ['moderation'], refusals: { role_needed: 403 } } as const
  const refusals = { ...actionRefusals, filter_invalid: 422 } as const

  app.get(
    '/filters',
    {
      schema: {
        operationId: 'listFilters',
        tags,
        summary: 'List filters',
        description: 'Newest first, with their hits of the last 30 days.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(FilterSchema), { description: 'The filters.' }) },
      },
      config: read,
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'moderation')
      const page = await listModerationFilters(request.services, actor, readIdPaging(request.query))
      linkIdPages(request, reply, page)
      return page.items.map(presentFilter)
    },
  )

  app.get(
    '/filters/:id',
    {
      schema: {
        operationId: 'getFilter',
        tags,
        summary: 'Read a filter',
        description: 'With its hits by day and the latest hits.',
        params,
        response: { 200: refTo(FilterDetailsSchema, 'The filter.') },
      },
      config: { ...read, refusals: { role_needed: 403, filter_not_found: 404 } },
    },
    async (request) =>
      presentFilterDetails(
        await readModerationFilter(request.services, await getRequestActor(request, 'moderation'), request.params.id),
      ),
  )

  app.post(
    '/filters',
    {
      schema: {
        operationId: 'addFilter',
        tags,
        summary: 'Add a filter',
        description:
          'In force in all processes within 5 seconds. Texts are compared in lower case, in Unicode form NFKC and without invisible characters. In the state `trial`, the default, hits are only counted.',
        body: Type.Object({ ...newFilterBody, ...actionBody }),
        response: { 201: changeResponse('The filter is added.') },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, too_many_filters: 422 } },
    },
    async (request, reply) => {
      const { kind, value, action, ...body } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const input = { ...readInput(body), kind, value, action }
      return reply.code(201).send(present(await addFilter(request.services, actor, input, readOptions(body))))
    },
  )

  app.patch(
    '/filters/:id',
    {
      schema: {
        operationId: 'changeFilter',
        tags,
        summary: 'Change a filter',
        description: 'Missing fields stay unchanged. In force in all processes within 5 seconds.',
        params,
        body: ChangedBody,
        response: { 200: changeResponse('The filter now.') },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, filter_not_found: 404 } },
    },
    async (request) => {
      const {
        body,
        params: { id },
      } = request
      const actor = await getRequestActor(request, 'moderation')
      return present(await changeFilter(request.services, actor, { id, ...readInput(body) }, readOptions(body)))
    },
  )

  app.delete(
    '/filters/:id',
    {
      schema: {
        operationId: 'removeFilter',
        tags,
        summary: 'Remove a filter',
        description: 'Its matches are deleted too. Its effects stay.',
        params,
        ...deletionFields,
        response: { 200: changeResponse('The filter that was removed.') },
      },
      config: { scopes: ['moderation'], refusals: { ...actionRefusals, filter_not_found: 404 } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      return present(await removeFilter(request.services, actor, request.params.id, readDeletionReason(request)))
    },
  )

  app.post(
    '/filters/:id/apply',
    {
      schema: {
        operationId: 'applyFilter',
        tags,
        summary: 'Apply a filter to stored content',
        description:
          'To the posts and comments of the last days, as a dry run finds them. A filter that flags opens cases; one that hides or rejects hides them, as one action with one undo. More than 500 hits are for admins.',
        params,
        body: Type.Object({
          days: Type.Optional(Type.Integer({ minimum: 1, maximum: 30, description: 'Default: 7.' })),
          confirm: Type.Optional(Type.String({ description: 'The number of hits.' })),
          ...actionBody,
        }),
        response: {
          200: Type.Object(Applied, { description: 'The filter is applied.' }),
          202: Type.Object(
            {
              ...OperationSchema.properties,
              ...Applied,
            },
            { description: 'More than 200 hits: the work in the background; `Location` leads to it.' },
          ),
        },
      },
      config: {
        scopes: ['moderation'],
        refusals: {
          ...actionRefusals,
          filter_not_found: 404,
          days_invalid: 422,
          bad_transition: 409,
          confirmation_needed: 409,
          operation_running: 409,
        },
      },
    },
    async (request, reply) => {
      const { days, confirm, ...body } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const options = { days, confirm, ...readOptions(body) }
      const { task, ...outcome } = await applyFilter(request.services, actor, request.params.id, options)
      if (task === undefined) return outcome
      return { ...sendOperation(reply, task), ...outcome }
    },
  )

  app.post(
    '/filters/dry_run',
    {
      schema: {
        operationId: 'dryRunFilter',
        tags,
        summary: 'Try a filter',
        description:
          'Compares stored content of the last days with a filter that need not be saved. Changes nothing. Reads at most 200 000 rows in 20 seconds, newest first.',
        body: Type.Object({
          ...newFilterBody,
          action: Type.Optional(newFilterBody.action),
          days: Type.Optional(Type.Integer({ minimum: 1, maximum: 30, description: 'Default: 7.' })),
        }),
        response: { 200: refTo(DryRunSchema, 'What the filter would have hit.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, filter_invalid: 422, days_invalid: 422 } },
    },
    async (request) => {
      const { kind, value, action = 'count', days, ...body } = request.body
      const actor = await getRequestActor(request, 'moderation')
      return presentDryRun(
        await dryRunFilter(request.services, actor, { ...readInput(body), kind, value, action }, { days }),
      )
    },
  )
}

type InputBody = Omit<Static<typeof ChangedBody>, 'reason' | 'case_id'>

function readInput({ kind, value, fields, origin, action, state, ...body }: InputBody): FilterInput {
  return Object.fromEntries(
    Object.entries({
      kind,
      value,
      fields,
      origin,
      action,
      state,
      accountAgeDays: body.account_age_days,
      exemptFollowed: body.exempt_followed,
      isPrivate: body.private,
    }).filter(([, given]) => given !== undefined),
  )
}

function readOptions({ reason, case_id: caseId }: Pick<Static<typeof ChangedBody>, 'reason' | 'case_id'>) {
  return { reason, caseId }
}

function present({ filter, changed, action }: FilterOutcome) {
  const presentedFilter = presentFilter(filter)
  const { action: _ofFilter, ...fields } = presentedFilter
  return { ...fields, changed, filter: presentedFilter, ...(action && { action }) }
}
