import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ActionOutcome } from '../../../../domain/moderation/record-action.js'
import {
  addIpRule,
  addMailRule,
  changeNetworkRule,
  listRulesForSignUps,
  removeNetworkRule,
} from '../../../../domain/moderation/sign-ups/network-rules.js'
import type { NetworkRules, NetworkRuleTable } from '../../../../persistence/moderation/network-rules.js'
import { cursorPaging } from '../../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../../api/id-paging.js'
import { presentIpRule, presentListedDomain, presentMailRule } from '../../../presenters/network-rules.js'
import {
  ActionSummary,
  actionBody,
  actionRefusals,
  Changed,
  deletionFields,
  readDeletionReason,
} from '../../../schemas/moderation/moderation.js'
import {
  IpRuleSchema,
  IpRuleSeveritySchema,
  MailRuleSchema,
  MailRuleSeveritySchema,
} from '../../../schemas/moderation/network-rules.js'
import { refTo } from '../../../schemas/references.js'
import { readTime } from '../../../schemas/times.js'
import { addRoutes } from '../../../server/add-routes.js'
import { getRequestActor } from '../actor-of.js'

const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const settings = {
  comment: Type.Optional(Type.String({ description: 'Only moderators and admins read it.' })),
  until: Type.Optional(
    Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'The rule ends then. Default: never.' }),
  ),
  ...actionBody,
}
const TABLES = { mail: 'mail_rules', ip: 'ip_rules' } as const
const tags = ['Sign-ups']
const refusals = { ...actionRefusals, comment_invalid: 422, until_invalid: 422 } as const
const notFound = { rule_not_found: 404 } as const
const config = { scopes: ['moderation'], refusals: { ...refusals, ...notFound } } as const
const deletion = { params, ...deletionFields } as const
const changeFields = { changed: Changed, action: Type.Optional(ActionSummary) }
const outcomeOf = ({ changed, action }: ActionOutcome) => ({ changed, ...(action && { action }) })

/** Rules for sign-ups by e-mail address and mail domain, and for networks. */
export const networkRuleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  await addRoutes(app, [mailRuleRoutes, ipRuleRoutes])
}

const mailRuleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const ruleResponse = Type.Object({ ...MailRuleSchema.properties, ...changeFields }, { description: 'The rule.' })

  app.get(
    '/mail_rules',
    {
      schema: {
        operationId: 'listMailRules',
        tags,
        summary: 'List rules for e-mail addresses',
        description: 'Newest first, with their hits. The first page begins with the domains of EMAIL_DOMAIN_BLOCKLIST.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(MailRuleSchema), { description: 'The rules.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const paging = readIdPaging(request.query)
      const page = await listRulesForSignUps(
        request.services,
        await getRequestActor(request, 'moderation'),
        TABLES.mail,
        paging,
      )
      linkIdPages(request, reply, page)
      const listedDomains = page.hasNewer ? [] : app.services.config.emailDomainBlocklist
      return [...listedDomains.map(presentListedDomain), ...page.items.map(presentMailRule)]
    },
  )

  app.post(
    '/mail_rules',
    {
      schema: {
        operationId: 'addMailRule',
        tags,
        summary: 'Add a rule for an e-mail address or a mail domain',
        description:
          'A domain stands for its subdomains, and for domains whose mail its hosts take. Of an address only a keyed hash is stored; it applies to all spellings of the mailbox. A rule that is there already is changed.',
        body: Type.Object({
          kind: Type.Enum(['email', 'domain']),
          value: Type.String({ maxLength: 300 }),
          severity: Type.Optional(MailRuleSeveritySchema),
          ...settings,
        }),
        response: { 200: ruleResponse, 201: ruleResponse },
      },
      config: { ...config, refusals: { ...refusals, email_invalid: { status: 422, field: 'value' } } },
    },
    async (request, reply) => {
      const { kind, value, severity, comment, until, reason, case_id: caseId } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const input = { kind, value, severity, comment, until: readUntil(until) }
      const { rule, ...outcome } = await addMailRule(request.services, actor, input, { reason, caseId })
      return reply.code(codeOf(outcome)).send({ ...presentMailRule(rule), ...outcomeOf(outcome) })
    },
  )

  app.patch(
    '/mail_rules/:id',
    {
      schema: {
        operationId: 'changeMailRule',
        tags,
        summary: 'Change a rule for e-mail addresses',
        description: 'Fields that are left out stay as they are.',
        params,
        body: Type.Object({ severity: Type.Optional(MailRuleSeveritySchema), ...settings }),
        response: { 200: ruleResponse },
      },
      config,
    },
    async (request) => {
      const { rule, ...outcome } = await changeRule(request, TABLES.mail, request.params.id, request.body)
      return { ...presentMailRule(rule), ...outcomeOf(outcome) }
    },
  )

  app.delete(
    '/mail_rules/:id',
    {
      schema: {
        operationId: 'removeMailRule',
        tags,
        summary: 'Remove a rule for e-mail addresses',
        description: 'Sign-ups that wait because of it still need a decision.',
        ...deletion,
        response: { 200: ruleResponse },
      },
      config: { scopes: ['moderation'], refusals: { ...actionRefusals, ...notFound } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      const { id } = request.params
      const { rule, ...outcome } = await removeNetworkRule(
        request.services,
        actor,
        { table: TABLES.mail, id },
        readDeletionReason(request),
      )
      return { ...presentMailRule(rule), ...outcomeOf(outcome) }
    },
  )
}

const ipRuleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const ruleResponse = Type.Object({ ...IpRuleSchema.properties, ...changeFields }, { description: 'The rule.' })

  app.get(
    '/ip_rules',
    {
      schema: {
        operationId: 'listIpRules',
        tags,
        summary: 'List rules for networks',
        description: 'Newest first, with their hits.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(IpRuleSchema), { description: 'The rules.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const paging = readIdPaging(request.query)
      const page = await listRulesForSignUps(
        request.services,
        await getRequestActor(request, 'moderation'),
        TABLES.ip,
        paging,
      )
      linkIdPages(request, reply, page)
      return page.items.map(presentIpRule)
    },
  )

  app.post(
    '/ip_rules',
    {
      schema: {
        operationId: 'addIpRule',
        tags,
        summary: 'Add a rule for a network',
        description:
          'In force in all processes within 5 seconds. Refused: networks wider than /8 (IPv4) or /32 (IPv6), your own address, this machine, and trusted proxies. A rule that is there already is changed.',
        body: Type.Object({ cidr: Type.String({ maxLength: 100 }), severity: IpRuleSeveritySchema, ...settings }),
        response: { 200: ruleResponse, 201: ruleResponse },
      },
      config: {
        ...config,
        refusals: {
          ...refusals,
          cidr_invalid: 422,
          too_broad: { status: 422, field: 'cidr' },
          own_address: 422,
          protected_network: 422,
        },
      },
    },
    async (request, reply) => {
      const { cidr, severity, comment, until, reason, case_id: caseId } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const input = { cidr, severity, comment, until: readUntil(until) }
      const options = { reason, caseId, ownAddress: request.ip }
      const { rule, ...outcome } = await addIpRule(request.services, actor, input, options)
      return reply.code(codeOf(outcome)).send({ ...presentIpRule(rule), ...outcomeOf(outcome) })
    },
  )

  app.patch(
    '/ip_rules/:id',
    {
      schema: {
        operationId: 'changeIpRule',
        tags,
        summary: 'Change a rule for a network',
        description: 'Fields that are left out stay as they are.',
        params,
        body: Type.Object({ severity: Type.Optional(IpRuleSeveritySchema), ...settings }),
        response: { 200: ruleResponse },
      },
      config: { ...config, refusals: { ...config.refusals, own_address: 422 } },
    },
    async (request) => {
      const { rule, ...outcome } = await changeRule(request, TABLES.ip, request.params.id, request.body)
      return { ...presentIpRule(rule), ...outcomeOf(outcome) }
    },
  )

  app.delete(
    '/ip_rules/:id',
    {
      schema: {
        operationId: 'removeIpRule',
        tags,
        summary: 'Remove a rule for a network',
        description: 'In force in all processes within 5 seconds.',
        ...deletion,
        response: { 200: ruleResponse },
      },
      config: { scopes: ['moderation'], refusals: { ...actionRefusals, ...notFound } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      const { id } = request.params
      const { rule, ...outcome } = await removeNetworkRule(
        request.services,
        actor,
        { table: TABLES.ip, id },
        readDeletionReason(request),
      )
      return { ...presentIpRule(rule), ...outcomeOf(outcome) }
    },
  )
}

interface RuleChange<Severity extends string> {
  readonly severity?: Severity
  readonly comment?: string
  readonly until?: string | null
  readonly reason?: string
  readonly case_id?: number
}

async function changeRule<Table extends NetworkRuleTable>(
  request: FastifyRequest,
  table: Table,
  id: number,
  { severity, comment, until, reason, case_id: caseId }: RuleChange<NetworkRules[Table]['severity']>,
) {
  const actor = await getRequestActor(request, 'moderation')
  const change = { table, id, severity, comment, until: readUntil(until) }
  return changeNetworkRule(request.services, actor, change, { reason, caseId, ownAddress: request.ip })
}

/** 201: the rule is new. */
function codeOf({ action }: ActionOutcome): 200 | 201 {
  return action?.kind.endsWith('.add') === true ? 201 : 200
}

function readUntil(until: string | null | undefined): Date | null | undefined {
  return typeof until === 'string' ? readTime('until', until) : until
}
