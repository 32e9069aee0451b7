import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { exportPodRules } from '../../../domain/moderation/pods/pod-rule-lists.js'
import {
  changePodRule,
  deletePodRule,
  listRules,
  type PodRuleOutcome,
  previewDetails,
  previewPodRule,
  readRule,
  setPodRule,
} from '../../../domain/moderation/pods/pod-rules.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentPodRule } from '../../presenters/pod-rules.js'
import {
  ActionSummary,
  actionBody,
  actionRefusals,
  Changed,
  readDeletionReason,
} from '../../schemas/moderation/moderation.js'
import { PodPreviewSchema, PodRuleSchema, PodRuleState } from '../../schemas/moderation/pod-rules.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Pods']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })

const domain = {
  domain: Type.String({ minLength: 1, maxLength: 300, description: 'A host. `*.` in front means with subdomains.' }),
  subdomains: Type.Optional(Type.Boolean({ description: 'Also for subdomains. Default: true.' })),
  port: Type.Optional(
    Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      maximum: 65_535,
      description: 'Default: every port.',
    }),
  ),
}
const confirm = Type.Optional(
  Type.String({
    description:
      'The domain, to block pods with relations to local users, also by the end of an exception below a wider block.',
  }),
)
const settings = {
  public_comment: Type.Optional(Type.String({ description: 'Part of the exported list.' })),
  obfuscate: Type.Optional(Type.Boolean()),
  until: Type.Optional(
    Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'The rule ends then. Default: never.' }),
  ),
  ...actionBody,
  confirm,
}
const deletion = Type.Object({ reason: actionBody.reason, confirm })
const domainRefusals = { domain_invalid: 422, own_pod: 422, too_broad: 422 } as const
const refusals = {
  ...actionRefusals,
  confirmation_needed: 409,
  public_comment_invalid: 422,
  until_invalid: 422,
} as const
const outcome = (description: string) =>
  Type.Object({ action: Type.Optional(ActionSummary), changed: Changed, ...PodRuleSchema.properties }, { description })

/** The rules for pods. */
export const podRuleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/pod_rules',
    {
      schema: {
        operationId: 'listPodRules',
        tags,
        summary: 'List the rules for pods',
        description: 'Newest first.',
        querystring: Type.Object({
          q: Type.Optional(Type.String({ description: 'A part of the domain.' })),
          state: Type.Optional(PodRuleState),
          batch_id: Type.Optional(
            Type.Integer({
              maximum: Number.MAX_SAFE_INTEGER,
              description: 'The rules that an import has made or changed last.',
            }),
          ),
          ...cursorPaging,
        }),
        response: { 200: Type.Array(refTo(PodRuleSchema), { description: 'The rules.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { q, state, batch_id: batchId, ...paging } = request.query
      const filter = { q: q?.toLowerCase(), state, batchId }
      const page = await listRules(
        request.services,
        await getRequestActor(request, 'moderation'),
        filter,
        readIdPaging(paging),
      )
      linkIdPages(request, reply, page)
      return page.items.map(presentPodRule)
    },
  )

  app.post(
    '/pod_rules',
    {
      schema: {
        operationId: 'setPodRule',
        tags,
        summary: 'Create a rule for pods',
        description:
          'For a domain, whether a pod there is known or not. `limited` silences everyone there, `blocked` ends all traffic and hides what is here, `normal` is an exception below a wider rule. A domain that has a rule gets the new one (200).',
        body: Type.Object({ ...domain, state: PodRuleState, ...settings }),
        response: { 200: outcome('The rule, changed or as before.'), 201: outcome('The new rule.') },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, ...domainRefusals } },
    },
    async (request, reply) => {
      const { domain: name, subdomains, port, state, reason, case_id: caseId, confirm } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const input = { domain: name, subdomains, port, state, ...readSettings(request.body) }
      const ruleOutcome = await setPodRule(request.services, actor, input, { reason, caseId, confirm })
      reply.code(ruleOutcome.created ? 201 : 200)
      return presentOutcome(ruleOutcome)
    },
  )

  app.get(
    '/pod_rules/:id',
    {
      schema: {
        operationId: 'getPodRule',
        tags,
        summary: 'Read a rule',
        description: 'With the number of known pods within its domain.',
        params,
        response: { 200: refTo(PodRuleSchema, 'The rule.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, rule_not_found: 404 } },
    },
    async (request) =>
      presentPodRule(await readRule(request.services, await getRequestActor(request, 'moderation'), request.params.id)),
  )

  app.patch(
    '/pod_rules/:id',
    {
      schema: {
        operationId: 'changePodRule',
        tags,
        summary: 'Change a rule',
        description: 'Fields that are left out stay as they are. The reason of the change becomes that of the rule.',
        params,
        body: Type.Object({ subdomains: domain.subdomains, state: Type.Optional(PodRuleState), ...settings }),
        response: { 200: outcome('The rule.') },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, rule_not_found: 404 } },
    },
    async (request) => {
      const { subdomains, state, reason, case_id: caseId, confirm } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const change = { id: request.params.id, subdomains, ...(state && { state }), ...readSettings(request.body) }
      return presentOutcome(await changePodRule(request.services, actor, change, { reason, caseId, confirm }))
    },
  )

  app.delete(
    '/pod_rules/:id',
    {
      schema: {
        operationId: 'deletePodRule',
        tags,
        summary: 'Delete a rule',
        description:
          'Deliveries of the last 14 days to pods that are no longer blocked are sent. Messages that were dropped stay lost.',
        params,
        querystring: deletion,
        body: deletion,
        response: {
          200: Type.Object({ action: Type.Optional(ActionSummary), changed: Changed }, { description: 'Deleted.' }),
        },
      },
      config: {
        scopes: ['moderation'],
        refusals: { ...actionRefusals, rule_not_found: 404, confirmation_needed: 409 },
      },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      const options = { ...readDeletionReason(request), confirm: request.query.confirm ?? request.body.confirm }
      return deletePodRule(request.services, actor, request.params.id, options)
    },
  )

  app.post(
    '/pod_rules/preview',
    {
      schema: {
        operationId: 'previewPodRule',
        tags,
        summary: 'Count what a rule would concern',
        description: 'Changes nothing. A count above 100 000 is a bound.',
        body: Type.Object(domain),
        response: { 200: refTo(PodPreviewSchema, 'The counts.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, ...domainRefusals } },
    },
    async (request) =>
      previewDetails(
        await previewPodRule(request.services, await getRequestActor(request, 'moderation'), request.body),
      ),
  )

  app.get(
    '/pod_rules/export',
    {
      schema: {
        operationId: 'exportPodRules',
        tags,
        summary: 'Export the rules as CSV',
        description:
          'With the columns of domain block lists of Mastodon. `blocked` is `suspend`, `limited` is `silence`; `normal` is left out.',
        produces: ['text/csv'],
        response: { 200: Type.String({ description: 'The rules by domain.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const csv = await exportPodRules(request.services, await getRequestActor(request, 'moderation'))
      reply.type('text/csv; charset=utf-8').header('content-disposition', 'attachment; filename="pod_rules.csv"')
      return csv
    },
  )
}

function readSettings(
  body: Partial<Record<'public_comment', string> & Record<'obfuscate', boolean> & Record<'until', string | null>>,
) {
  const { public_comment: publicComment, obfuscate, until } = body
  return { publicComment, obfuscate, until: typeof until === 'string' ? readTime('until', until) : until }
}

function presentOutcome({
  rule,
  changed,
  action,
}: PodRuleOutcome): Static<typeof PodRuleSchema> & { changed: boolean } {
  return { ...presentPodRule(rule), changed, ...(action && { action }) }
}
