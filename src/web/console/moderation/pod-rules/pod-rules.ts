import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { hasPower } from '../../../../domain/accounts/role-powers.js'
import { exportPodRules } from '../../../../domain/moderation/pods/pod-rule-lists.js'
import {
  changePodRule,
  deletePodRule,
  listRules,
  previewDetails,
  previewPodRule,
  readRule,
  setPodRule,
} from '../../../../domain/moderation/pods/pod-rules.js'
import { nameOfRule } from '../../../../domain/moderation/pods/rule-domain.js'
import { type ListedPodRule, POD_RULE_STATES } from '../../../../persistence/moderation/pod-rules.js'
import { formChoice, formNumber, formTime, isTicked, pathId } from '../../../forms/form-fields.js'
import { formText } from '../../../forms/form-text.js'
import { html } from '../../../pages/markup.js'
import { queryText } from '../../../schemas/query-text.js'
import { addFormAction, pathWithParameters, previewList, ShowPage, useCaseArguments } from '../../actions.js'
import { sendConsolePage } from '../../console-page.js'
import { buildChoices, filterForm, select, textField } from '../../form-parts.js'
import { idNavigation, idPageIn } from '../../pager.js'
import { formatCount, formatTime } from '../../quantities.js'
import { listCard } from '../../tables.js'
import { readActionOptions } from '../case-form.js'
import { newRuleForm, rulePage, ruleState } from './pod-rule-page.js'

/** `/admin/rules`: rules for pods, by domain. */
export const podRuleRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/rules', { config, schema }, async (request, reply) => {
    const { actor, staff } = request.console
    const q = queryText(request, 'q')?.trim().toLowerCase()
    const state = POD_RULE_STATES.find((each) => each === queryText(request, 'state'))
    const page = await listRules(request.services, actor, { q, state }, idPageIn(request))
    const fields = [
      textField('Domain contains', 'q', q),
      select('State', 'state', buildChoices(POD_RULE_STATES, 'all'), state),
    ]
    const isFiltered = q !== undefined || state !== undefined
    return sendConsolePage(request, reply, {
      title: page.items.length === 0 ? 'Rules for pods: none' : 'Rules for pods',
      content: html`<section class="card">${filterForm('/admin/rules', fields)}
${listCard(ruleTable(page.items), {
  empty: isFiltered ? 'No rules match.' : 'There are no rules.',
  pages: idNavigation('/admin/rules', { q, state }, page),
})}
<p><a href="/admin/rules/export">Export as CSV</a>${
        hasPower(staff.role, 'administration') && html` · <a href="/admin/rules/import">Import a list</a>`
      }</p></section>
<section class="card"><h2>A new rule</h2>${newRuleForm(request)}</section>`,
    })
  })

  app.get('/admin/rules/export', { config, schema }, async (request, reply) => {
    const csv = await exportPodRules(request.services, request.console.actor)
    reply.type('text/csv; charset=utf-8').header('content-disposition', 'attachment; filename="pod_rules.csv"')
    return reply.send(csv)
  })

  app.get('/admin/rules/:id', { config, schema }, async (request, reply) => {
    const { actor } = request.console
    const rule = await readRule(request.services, actor, pathId(request))
    const preview = previewDetails(await previewPodRule(request.services, actor, rule))
    return sendConsolePage(request, reply, rulePage(request, rule, preview))
  })

  /** Counts what a rule for the domain would concern. */
  app.post('/admin/rules/preview', { config, schema }, async (request, reply) => {
    const input = domainIn(request)
    const preview = previewDetails(await previewPodRule(request.services, request.console.actor, input))
    return sendConsolePage(request, reply, {
      title: `Preview: ${preview.domain}`,
      content: html`<section class="card"><p>Nothing has been changed yet.</p>${previewList(preview)}</section>
<section class="card"><h2>The rule</h2>${newRuleForm(request, { ...input, state: formChoice(request, 'state', POD_RULE_STATES) })}</section>`,
    })
  })

  addRuleActions(app)
}

function addRuleActions(app: FastifyInstance): void {
  const common = {
    power: 'moderation',
    current: async (request: FastifyRequest) => {
      const rule = await readRule(...useCaseArguments(request))
      return { version: rule.updatedAt.toISOString(), state: ruleState(rule) }
    },
  } as const

  addFormAction(app, {
    path: '/admin/rules',
    power: 'moderation',
    title: 'Set the rule',
    flash: 'rule_set',
    page: '/admin/rules',
    label: (_request, { domain }) => String(domain),
    async run(request, confirm) {
      const state = formChoice(request, 'state', POD_RULE_STATES) ?? 'limited'
      const input = { ...domainIn(request), ...settingsIn(request), state }
      const { rule } = await setPodRule(request.services, request.console.actor, input, {
        ...readActionOptions(request),
        confirm,
      })
      return new ShowPage(`/admin/rules/${rule.id}`)
    },
  })
  addFormAction(app, {
    ...common,
    path: '/admin/rules/:id/change',
    title: 'Change the rule',
    flash: 'rule_set',
    page: pathWithParameters('/admin/rules/:id'),
    label: (_request, { domain }) => String(domain),
    run: (request, confirm) => {
      const state = formChoice(request, 'state', POD_RULE_STATES)
      const subdomains = isTicked(request, 'subdomains')
      const change = { id: pathId(request), ...(state && { state }), ...settingsIn(request), subdomains }
      return changePodRule(request.services, request.console.actor, change, { ...readActionOptions(request), confirm })
    },
  })
  addFormAction(app, {
    ...common,
    path: '/admin/rules/:id/delete',
    title: 'Delete the rule',
    flash: 'rule_deleted',
    page: '/admin/rules',
    label: (_request, { domain }) => String(domain),
    run: (request, confirm) => deletePodRule(...useCaseArguments(request), { ...readActionOptions(request), confirm }),
  })
}

function domainIn(request: FastifyRequest) {
  return {
    domain: formText(request, 'domain') ?? '',
    subdomains: isTicked(request, 'subdomains'),
    port: formNumber(request, 'port') ?? null,
  }
}

function settingsIn(request: FastifyRequest) {
  return {
    publicComment: formText(request, 'public_comment') ?? '',
    obfuscate: isTicked(request, 'obfuscate'),
    until: formTime(request, 'until') ?? null,
  }
}

function ruleTable(rules: readonly ListedPodRule[]) {
  return {
    caption: 'Rules, newest first',
    columns: [
      { title: 'Domain' },
      { title: 'State' },
      { title: 'Subdomains' },
      { title: 'Known pods', kind: 'number' as const },
      { title: 'By' },
      { title: 'Made' },
      { title: 'Ends' },
      { title: 'Reason', kind: 'wide' as const },
    ],
    rows: rules.map((rule) => [
      html`<a href="/admin/rules/${rule.id}"><bdi>${nameOfRule(rule)}</bdi></a>`,
      ruleState(rule),
      rule.subdomains ? 'yes' : 'no',
      formatCount(rule.knownPods),
      html`<bdi>${rule.createdBy}</bdi>`,
      formatTime(rule.createdAt),
      rule.until === null ? '–' : formatTime(rule.until),
      html`<bdi>${rule.reason}</bdi>`,
    ]),
  }
}
