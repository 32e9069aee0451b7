import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { MODERATION_LIMITS } from '../../../../domain/moderation/limits.js'
import {
  addIpRule,
  addMailRule,
  changeNetworkRule,
  labelOfRule,
  listRulesForSignUps,
  type NetworkRuleChange,
  removeNetworkRule,
} from '../../../../domain/moderation/sign-ups/network-rules.js'
import {
  IP_RULE_SEVERITIES,
  type IpRule,
  MAIL_RULE_SEVERITIES,
  type MailRule,
  type NetworkRuleTable,
} from '../../../../persistence/moderation/network-rules.js'
import { formChoice, formTime, pathId } from '../../../forms/form-fields.js'
import { formText } from '../../../forms/form-text.js'
import { html, type Markup, type MarkupValue } from '../../../pages/markup.js'
import { queryText } from '../../../schemas/query-text.js'
import { addFormAction } from '../../actions.js'
import { sendConsolePage } from '../../console-page.js'
import { actionForm, reasonField, select, textField, untilField } from '../../form-parts.js'
import { idNavigation, idPageIn } from '../../pager.js'
import { formatCount, formatTime } from '../../quantities.js'
import { listCard } from '../../tables.js'
import { readActionOptions } from '../case-form.js'

const PAGE = '/admin/network-rules'
const KINDS = ['domain', 'email'] as const
const WORDS: Readonly<Record<string, string>> = {
  reject: 'no sign-up',
  approve: 'a moderator decides about sign-ups',
  sign_up_approval: 'a moderator decides about sign-ups',
  sign_up_block: 'no sign-up',
  no_access: 'no pages and no API',
}

/** `/admin/network-rules`: rules for sign-ups by e-mail address and mail domain, and for networks. */
export const networkRuleRoutes: FastifyPluginAsync = async (app) => {
  app.get(PAGE, { config: { power: 'moderation' }, schema: { hide: true } }, async (request, reply) => {
    const { actor } = request.console
    const table: NetworkRuleTable = queryText(request, 'of') === 'mail_rules' ? 'mail_rules' : 'ip_rules'
    const pageOf = (of: NetworkRuleTable) => (of === table ? idPageIn(request) : { limit: MODERATION_LIMITS.pageItems })
    const [ip, mail] = await Promise.all([
      listRulesForSignUps(request.services, actor, 'ip_rules', pageOf('ip_rules')),
      listRulesForSignUps(request.services, actor, 'mail_rules', pageOf('mail_rules')),
    ])
    const listedDomains = mail.hasNewer ? [] : request.services.config.emailDomainBlocklist
    const number = ip.items.length + mail.items.length + listedDomains.length
    return sendConsolePage(request, reply, {
      title: number === 0 ? 'Rules for networks and e-mail: none' : 'Rules for networks and e-mail',
      content: html`<section class="card"><h2>Networks</h2>${listCard(
        ruleTable(
          'Rules for networks, newest first',
          ip.items.map((rule) => ruleRow(request, 'ip_rules', rule)),
        ),
        { empty: 'No rules for networks.', pages: idNavigation(PAGE, { of: 'ip_rules' }, ip) },
      )}<h3>Add a rule for a network</h3>${ipForm(request)}</section>
<section class="card"><h2>E-mail addresses and domains</h2>${listCard(
        ruleTable('Rules for e-mail addresses and domains, newest first', [
          ...listedDomains.map(listedRow),
          ...mail.items.map((rule) => ruleRow(request, 'mail_rules', rule)),
        ]),
        { empty: 'No rules for e-mail.', pages: idNavigation(PAGE, { of: 'mail_rules' }, mail) },
      )}<h3>Add a rule for e-mail</h3>${mailForm(request)}</section>`,
    })
  })

  addRuleActions(app)
}

function addRuleActions(app: FastifyInstance): void {
  const common = { power: 'moderation', page: PAGE } as const
  const settingsIn = (request: FastifyRequest) => ({
    comment: formText(request, 'comment'),
    until: formTime(request, 'until'),
  })

  addFormAction(app, {
    ...common,
    path: `${PAGE}/ip_rules`,
    title: 'Add the rule',
    flash: 'network_rule_set',
    run(request) {
      const severity = formChoice(request, 'severity', IP_RULE_SEVERITIES) ?? 'sign_up_approval'
      const input = { cidr: formText(request, 'cidr') ?? '', severity, ...settingsIn(request) }
      return addIpRule(request.services, request.console.actor, input, {
        ...readActionOptions(request),
        ownAddress: request.ip,
      })
    },
  })
  addFormAction(app, {
    ...common,
    path: `${PAGE}/mail_rules`,
    title: 'Add the rule',
    flash: 'network_rule_set',
    run(request) {
      const severity = formChoice(request, 'severity', MAIL_RULE_SEVERITIES)
      const kind = formChoice(request, 'kind', KINDS) ?? 'domain'
      const input = { kind, value: formText(request, 'value') ?? '', severity, ...settingsIn(request) }
      return addMailRule(request.services, request.console.actor, input, readActionOptions(request))
    },
  })
  for (const table of ['ip_rules', 'mail_rules'] as const) {
    addFormAction(app, {
      ...common,
      path: `${PAGE}/${table}/:id/change`,
      title: 'Change the rule',
      flash: 'network_rule_set',
      run(request) {
        const severity =
          table === 'ip_rules'
            ? formChoice(request, 'severity', IP_RULE_SEVERITIES)
            : formChoice(request, 'severity', MAIL_RULE_SEVERITIES)
        const change = { table, id: pathId(request), severity, ...settingsIn(request) } as NetworkRuleChange<
          typeof table
        >
        return changeNetworkRule(request.services, request.console.actor, change, {
          ...readActionOptions(request),
          ownAddress: request.ip,
        })
      },
    })
    addFormAction(app, {
      ...common,
      path: `${PAGE}/${table}/:id/remove`,
      title: 'Remove the rule',
      flash: 'network_rule_removed',
      run: (request) =>
        removeNetworkRule(
          request.services,
          request.console.actor,
          { table, id: pathId(request) },
          readActionOptions(request),
        ),
    })
  }
}

function ruleTable(caption: string, rows: readonly (readonly MarkupValue[])[]) {
  return {
    caption,
    columns: [
      { title: 'For' },
      { title: 'Effect', kind: 'wide' as const },
      { title: 'Hits', kind: 'number' as const },
      { title: 'Ends' },
      { title: 'By' },
      { title: 'Comment', kind: 'wide' as const },
      { title: 'Change' },
    ],
    rows,
  }
}

function ruleRow(request: FastifyRequest, table: NetworkRuleTable, rule: IpRule | MailRule): readonly MarkupValue[] {
  return [
    html`<bdi>${labelOfRule(rule)}</bdi>`,
    WORDS[rule.severity],
    formatCount(Number(rule.hits)),
    rule.until === null ? 'never' : formatTime(rule.until),
    html`<bdi>${rule.createdBy}</bdi>`,
    html`<bdi>${rule.comment || '–'}</bdi>`,
    changeForms(request, table, rule),
  ]
}

/** A domain of the setting, which no page changes. */
function listedRow(domain: string): readonly MarkupValue[] {
  return [html`<bdi>${domain}</bdi>`, WORDS['reject'], '–', 'never', 'EMAIL_DOMAIN_BLOCKLIST', '–', '–']
}

function changeForms(request: FastifyRequest, table: NetworkRuleTable, { id, severity, comment }: IpRule | MailRule) {
  const path = `${PAGE}/${table}/${id}`
  const change = html`${severityField(table, severity)}${textField('Comment', 'comment', comment)}${untilField('Ends on (UTC; empty: as before)')}${reasonField()}<button>Save</button>`
  return html`<details><summary>Change</summary>${actionForm(request, `${path}/change`, change)}${actionForm(request, `${path}/remove`, html`${reasonField()}<button class="quiet">Remove rule ${id}</button>`)}</details>`
}

function severityField(table: NetworkRuleTable, chosen: string): Markup {
  const severities = table === 'ip_rules' ? IP_RULE_SEVERITIES : MAIL_RULE_SEVERITIES
  return select(
    'Effect',
    'severity',
    severities.map((severity) => [severity, WORDS[severity] ?? severity]),
    chosen,
  )
}

function ipForm(request: FastifyRequest): Markup {
  const content = html`${textField('Network, like 198.51.100.0/24', 'cidr', '', { required: true })}${severityField('ip_rules', 'sign_up_approval')}${textField('Comment for moderators', 'comment')}${untilField()}${reasonField()}<button>Add the rule</button>`
  return actionForm(request, `${PAGE}/ip_rules`, content)
}

function mailForm(request: FastifyRequest): Markup {
  const kinds = select(
    'For',
    'kind',
    [
      ['domain', 'a domain with its subdomains'],
      ['email', 'one e-mail address'],
    ],
    'domain',
  )
  const content = html`${kinds}${textField('Domain or address', 'value', '', { required: true })}${severityField('mail_rules', 'reject')}${textField('Comment for moderators', 'comment')}${untilField()}${reasonField()}<button>Add the rule</button>`
  return actionForm(request, `${PAGE}/mail_rules`, content)
}
