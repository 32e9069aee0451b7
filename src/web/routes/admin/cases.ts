import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  listCaseHistory,
  listModerationCases,
  listModerationReports,
  readModerationCase,
  readOverview,
} from '../../../domain/moderation/cases.js'
import {
  addCaseNote,
  type CaseChange,
  dismissCase,
  releaseCase,
  reopenCase,
  resolveCase,
  takeCase,
} from '../../../domain/moderation/change-case.js'
import { forwardCase } from '../../../domain/moderation/forward-case.js'
import { CASE_STATES, CASE_TARGETS, type CaseFilter } from '../../../persistence/moderation/cases.js'
import { CASE_CURSOR, caseCursors, readCasePage } from '../../api/case-paging.js'
import { cursorPaging, readCursor } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { linkCursors } from '../../api/page-links.js'
import {
  presentCaseDetails,
  presentCaseEvent,
  presentCaseReport,
  presentListedCase,
} from '../../presenters/moderation.js'
import {
  actionBody,
  actionRefusals,
  CaseDetailsSchema,
  CaseEventSchema,
  CaseReportSchema,
  Changed,
  ListedCaseSchema,
} from '../../schemas/moderation/moderation.js'
import { nullable, refTo } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Cases']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const reason = Type.Optional(Type.String({ description: 'Why, for the history and the audit log.' }))
const neededReason = actionBody.reason
const State = Type.Enum([...CASE_STATES])

const list = Type.Object({
  state: Type.Optional(
    Type.Unsafe<CaseFilter['states'] | NonNullable<CaseFilter['states']>[number]>({
      anyOf: [State, { type: 'array', items: State }],
      description: 'May be repeated. Default: all.',
    }),
  ),
  type: Type.Optional(Type.Enum([...CASE_TARGETS])),
  author: Type.Optional(
    Type.String({ description: 'The guid or the address of a person; of a local one also the user name.' }),
  ),
  pod: Type.Optional(Type.String({ description: 'The host of the author.' })),
  local: Type.Optional(Type.Boolean()),
  taken_by: Type.Optional(Type.String({ description: 'The user name, address or guid of a moderator or admin.' })),
  reporter: Type.Optional(Type.String({ description: 'The user name, address or guid of a local person.' })),
  ...cursorPaging,
})

const changes = {
  take: {
    summary: 'Take a case',
    body: Type.Object({ reason, force: Type.Optional(Type.Boolean({ description: 'Also from another moderator.' })) }),
    run: takeCase,
  },
  release: { summary: 'Release a case', body: Type.Object({ reason }), run: releaseCase },
  reopen: { summary: 'Reopen a closed case', body: Type.Object({ reason: neededReason }), run: reopenCase },
} as const

/** The reports of users, in one case for each reported person, post or comment. */
export const caseRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const refusals = { ...actionRefusals, case_not_found: 404, bad_transition: 409 } as const
  const config = { scopes: ['moderation'], refusals } as const
  const caseResponse = {
    200: Type.Object({ changed: Changed, ...ListedCaseSchema.properties }, { description: 'The case now.' }),
  }
  const toResponse = ({ changed: hasChanged, case: found }: CaseChange) => {
    return { changed: hasChanged, ...presentListedCase(found, app.services.config) }
  }

  app.get(
    '/overview',
    {
      schema: {
        operationId: 'getModerationOverview',
        tags,
        summary: 'Count what waits for a decision',
        description: 'Open and taken cases, and sign-ups that need approval; each with the time of the oldest.',
        response: {
          200: Type.Object(
            {
              cases: Type.Object({
                open: Type.Integer(),
                taken: Type.Integer(),
                oldest_at: nullable(Type.String({ format: 'date-time' })),
              }),
              sign_ups: Type.Object({
                pending: Type.Integer(),
                oldest_at: nullable(Type.String({ format: 'date-time' })),
              }),
            },
            { description: 'What waits.' },
          ),
        },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      const { cases, signUps } = await readOverview(request.services, actor)
      return {
        cases: { open: cases.open, taken: cases.taken, oldest_at: cases.oldest?.toISOString() ?? null },
        sign_ups: { pending: signUps.pending, oldest_at: signUps.oldest?.toISOString() ?? null },
      }
    },
  )

  app.get(
    '/cases',
    {
      schema: {
        operationId: 'listCases',
        tags,
        summary: 'List cases',
        description:
          'Open cases before taken and closed ones; of each, those with more reporters first, then the oldest. A case about yourself is not shown to you.',
        querystring: list,
        response: { 200: Type.Array(refTo(ListedCaseSchema), { description: 'The cases.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { state, type, author, pod: domain, local: isLocal, taken_by: takenBy, reporter, ...paging } = request.query
      const { limit, groups } = readCursor(paging, CASE_CURSOR)
      const filter = {
        states: state === undefined ? undefined : [state].flat(),
        type,
        author,
        domain: domain?.toLowerCase(),
        isLocal,
        takenBy,
        reporter,
      }
      const cases = await listModerationCases(
        request.services,
        await getRequestActor(request, 'moderation'),
        filter,
        readCasePage(groups, limit),
      )
      linkCursors(request, reply, caseCursors(cases))
      return cases.items.map((caseWithActions) => presentListedCase(caseWithActions, app.services.config))
    },
  )

  app.get(
    '/cases/:id',
    {
      schema: {
        operationId: 'getCase',
        tags,
        summary: 'Read a case',
        description:
          'With the text, the reports and the history. Reading the text of private content is recorded in the audit log.',
        params,
        response: { 200: refTo(CaseDetailsSchema, 'The case.') },
      },
      config: { scopes: ['moderation'], writes: true, refusals: { role_needed: 403, case_not_found: 404 } },
    },
    async (request) =>
      presentCaseDetails(
        await readModerationCase(request.services, await getRequestActor(request, 'moderation'), request.params.id),
        app.services.config,
      ),
  )

  app.get(
    '/cases/:id/reports',
    {
      schema: {
        operationId: 'listReportsOfCase',
        tags,
        summary: 'List the reports of a case',
        description: 'Newest first.',
        params,
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(CaseReportSchema), { description: 'The reports.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, case_not_found: 404 } },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'moderation')
      const page = readIdPaging(request.query)
      const reports = await listModerationReports(request.services, actor, request.params.id, page)
      linkIdPages(request, reply, reports)
      return reports.items.map(presentCaseReport)
    },
  )

  app.get(
    '/cases/:id/history',
    {
      schema: {
        operationId: 'listCaseHistory',
        tags,
        summary: 'List the history of a case',
        description: 'Newest first.',
        params,
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(CaseEventSchema), { description: 'The steps of the case.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, case_not_found: 404 } },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'moderation')
      const page = readIdPaging(request.query)
      const events = await listCaseHistory(request.services, actor, request.params.id, page)
      linkIdPages(request, reply, events)
      return events.items.map(presentCaseEvent)
    },
  )

  for (const [name, { summary, body, run }] of Object.entries(changes)) {
    app.post(
      `/cases/:id/${name}`,
      {
        schema: {
          operationId: `${name}Case`,
          tags,
          summary,
          description: `${summary}. The history and the audit log record it.`,
          params,
          body,
          response: caseResponse,
        },
        config: { ...config, refusals: { ...refusals, ...(name === 'take' && { taken_by_other: 409 }) } },
      },
      async (request) =>
        toResponse(
          await run(request.services, await getRequestActor(request, 'moderation'), request.params.id, request.body),
        ),
    )
  }

  app.post(
    '/cases/:id/notes',
    {
      schema: {
        operationId: 'addCaseNote',
        tags,
        summary: 'Add a note to a case',
        description: 'Only moderators and admins read it.',
        params,
        body: Type.Object({ text: Type.String({ description: '1 to 2 000 characters.' }) }),
        response: caseResponse,
      },
      config: {
        ...config,
        refusals: {
          ...refusals,
          reason_needed: { status: 422, field: 'text' },
          reason_invalid: { status: 422, field: 'text' },
        },
      },
    },
    async (request) =>
      toResponse(
        await addCaseNote(
          request.services,
          await getRequestActor(request, 'moderation'),
          request.params.id,
          request.body,
        ),
      ),
  )

  app.post(
    '/cases/:id/forward',
    {
      schema: {
        operationId: 'forwardCase',
        tags,
        summary: 'Forward a case to the pod of the author',
        description:
          'Answers with a text for the operator of that pod, which names no reporter and nothing private, and with the known ways to them. Only with `via` it is sent, as a conversation of the podmin account.',
        params,
        body: Type.Object({
          include_reason: Type.Optional(Type.Boolean({ description: 'The text has the reasons of the reports.' })),
          via: Type.Optional(Type.Enum(['conversation'])),
          reason,
        }),
        response: {
          200: Type.Object(
            {
              text: Type.String(),
              ways: Type.Object({
                podmin: nullable(Type.String({ description: 'The operator whom the NodeInfo of that pod names.' })),
                conversation: Type.Boolean({ description: 'The podmin account can write to the operator.' }),
                mailto: Type.String(),
              }),
              sent: Type.Boolean(),
            },
            { description: 'The text, and whether it was sent.' },
          ),
        },
      },
      config: {
        ...config,
        refusals: {
          role_needed: 403,
          case_not_found: 404,
          not_remote: 422,
          reason_invalid: { status: 422, field: 'reason' },
          no_contact: 409,
        },
      },
    },
    async (request) => {
      const { include_reason: includeReason, via, reason: given } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const forwardedReport = await forwardCase(request.services, actor, request.params.id, {
        includeReason,
        via,
        reason: given,
      })
      const { text, podmin, canConverse: conversation, mailto, sent } = forwardedReport
      return { text, ways: { podmin, conversation, mailto }, sent }
    },
  )

  app.post(
    '/cases/:id/resolve',
    {
      schema: {
        operationId: 'resolveCase',
        tags,
        summary: 'Resolve a case',
        description: 'Closes a case after an action that names it in `case_id`, or without one.',
        params,
        body: Type.Object({
          reason: neededReason,
          without_action: Type.Optional(Type.Boolean({ description: 'Closes the case without a linked action.' })),
        }),
        response: caseResponse,
      },
      config,
    },
    async (request) => {
      const { reason: text, without_action: withoutAction } = request.body
      const actor = await getRequestActor(request, 'moderation')
      return toResponse(await resolveCase(request.services, actor, request.params.id, { reason: text, withoutAction }))
    },
  )

  app.post(
    '/cases/:id/dismiss',
    {
      schema: {
        operationId: 'dismissCase',
        tags,
        summary: 'Dismiss a case',
        description:
          'Closes a case as unfounded. A report of another user opens it again, unless further reports are ignored.',
        params,
        body: Type.Object({
          reason: neededReason,
          ignore_further: Type.Optional(Type.Boolean({ description: 'Later reports are only counted.' })),
        }),
        response: caseResponse,
      },
      config,
    },
    async (request) => {
      const { reason: text, ignore_further: ignoreFurther } = request.body
      const actor = await getRequestActor(request, 'moderation')
      return toResponse(await dismissCase(request.services, actor, request.params.id, { reason: text, ignoreFurther }))
    },
  )
}
