import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { hasPower } from '../../../domain/accounts/role-powers.js'
import { listModerationActions } from '../../../domain/moderation/actions.js'
import {
  type AuditEntry,
  type AuditFilter,
  exportAudit,
  getAuditEntry,
  listAudit,
} from '../../../domain/moderation/audit.js'
import { pathId } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { html, type Markup } from '../../pages/markup.js'
import { queryText, queryTexts } from '../../schemas/query-text.js'
import { readTime } from '../../schemas/times.js'
import { previewList } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { actionForm, filterForm, moreText, select, textField } from '../form-parts.js'
import { idNavigation, idPageIn } from '../pager.js'
import { formatTime } from '../quantities.js'
import { detailList, listCard } from '../tables.js'
import { undoForm } from './undo-form.js'

/** `/admin/audit`: who did what, when and why. */
export const auditRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/audit', { config, schema }, async (request, reply) => {
    const query = queryIn(request)
    const page = await listAudit(request.services, request.console.actor, filterOf(query), idPageIn(request))
    const pages = idNavigation('/admin/audit', query, page)
    return sendConsolePage(request, reply, {
      title: page.items.length === 0 ? 'Audit log: no entries' : 'Audit log',
      content: html`<section class="card">${filterForm('/admin/audit', filterFields(query), moreFilters(query))}
${listCard(entryTable(page.items), { empty: 'No entries match.', pages })}</section>
${exportForm(request)}`,
    })
  })

  app.get('/admin/audit/:id', { config, schema }, async (request, reply) => {
    const entry = await getAuditEntry(request.services, request.console.actor, pathId(request))
    const action = await undoableAction(request, entry)
    return sendConsolePage(request, reply, {
      title: `Audit entry ${entry.id}: ${entry.action}`,
      content: html`<section class="card">${factsOf(entry)}${action !== undefined && undoForm(request, action)}</section>
${changesCard('Before', entry.before)}${changesCard('After', entry.after)}`,
    })
  })

  app.post('/admin/audit/export', { config: { power: 'administration' }, schema }, async (request, reply) => {
    const format = formText(request, 'format') === 'ndjson' ? 'ndjson' : 'csv'
    const entries = await exportAudit(request.services, request.console.actor, format)
    reply.type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson')
    return reply.header('content-disposition', `attachment; filename="audit.${format}"`).send(entries)
  })

  /** The action that an entry has recorded, if it is in force: both have the same time and target. */
  async function undoableAction(request: FastifyRequest, { action: kind, target, at }: AuditEntry) {
    if (target.guid === null) return undefined
    const filter = { kind, target: target.guid, isInForce: true }
    const { items } = await listModerationActions(request.services, request.console.actor, filter, { limit: 10 })
    return items.find(({ createdAt }) => createdAt.getTime() === at.getTime())
  }
}

const NAMES = ['actor', 'action', 'target', 'domain', 'since', 'until'] as const
type Query = Readonly<Record<(typeof NAMES)[number], string | undefined>>

function queryIn(request: FastifyRequest): Query {
  const texts = NAMES.map((name) => [name, queryText(request, name)?.trim()])
  const actions = queryTexts(request, 'action').join(' ')
  return { ...(Object.fromEntries(texts) as Query), action: actions === '' ? undefined : actions } // has each name
}

function filterOf({ actor, action, target, domain, since, until }: Query): AuditFilter {
  return {
    actor,
    target,
    domain: domain?.toLowerCase(),
    actions: action?.split(/[\s,]+/).filter((each) => each !== ''),
    since: since === undefined ? undefined : readTime('since', since),
    until: until === undefined ? undefined : readTime('until', until),
  }
}

function filterFields(query: Query): readonly Markup[] {
  return [
    textField('Who (name, address or guid)', 'actor', query.actor),
    textField('Actions, separated by spaces', 'action', query.action),
  ]
}

function moreFilters(query: Query) {
  return [
    moreText('Target (guid)', 'target', query.target),
    moreText('Domain', 'domain', query.domain),
    moreText('From', 'since', query.since, { type: 'date' }),
    moreText('Before', 'until', query.until, { type: 'date' }),
  ]
}

function entryTable(entries: readonly AuditEntry[]) {
  return {
    caption: 'Entries, newest first',
    columns: [
      { title: 'Entry' },
      { title: 'Time' },
      { title: 'Who' },
      { title: 'Action' },
      { title: 'Target' },
      { title: 'Reason', kind: 'wide' as const },
      { title: 'By' },
    ],
    rows: entries.map(({ id, at, actor, action, target, reason, via }) => [
      html`<a href="/admin/audit/${id}">${id}</a>`,
      formatTime(at),
      html`<bdi>${actor.name}</bdi>`,
      action,
      html`${target.type} <bdi>${target.label}</bdi>`,
      html`<bdi>${reason ?? '–'}</bdi>`,
      via,
    ]),
  }
}

function factsOf(entry: AuditEntry): Markup {
  const { actor, target, caseId, undoes } = entry
  return detailList([
    ['Time', formatTime(entry.at)],
    ['Who', html`<bdi>${actor.name}</bdi>, ${actor.role}`],
    ['By', html`${entry.via}${entry.clientId !== null && html`, client <bdi>${entry.clientId}</bdi>`}`],
    ['Action', entry.action],
    ['Target', html`${target.type} ${linkTo(target)}`],
    ['Reason', html`<bdi>${entry.reason ?? 'none'}</bdi>`],
    ...(caseId === null ? [] : [['Case', html`<a href="/admin/reports/${caseId}">${caseId}</a>`] as const]),
    ...(undoes === null ? [] : [['Undoes', `action ${undoes}`] as const]),
    ['Trace', html`<bdi>${entry.traceId ?? 'none'}</bdi>`],
    ['Hash', html`<code>${entry.hash.toString('hex')}</code>`],
  ])
}

function linkTo({ type, guid, label }: AuditEntry['target']): Markup {
  const path = guid === null ? undefined : PAGES[type]?.(encodeURIComponent(guid))
  return path === undefined ? html`<bdi>${label}</bdi>` : html`<a href="${path}"><bdi>${label}</bdi></a>`
}

const PAGES: Readonly<Record<string, (guid: string) => string>> = {
  person: (guid) => `/admin/people/${guid}`,
  post: (guid) => `/admin/content/${guid}`,
  comment: (guid) => `/admin/content/${guid}?type=comment`,
  cluster: (guid) => `/admin/clusters/${guid}`,
  filter: (guid) => `/admin/filters/${guid}`,
  pod_rule: (guid) => `/admin/rules?q=${guid}`,
  pod_rule_import: (guid) => `/admin/rules/import/${guid}`,
}

function changesCard(title: string, values: AuditEntry['before']): Markup | false {
  return values !== null && html`<section class="card"><h2>${title}</h2>${previewList(values)}</section>\n`
}

function exportForm(request: FastifyRequest): Markup | false {
  if (!hasPower(request.console.staff.role, 'administration')) return false
  const formats = [
    ['csv', 'CSV'],
    ['ndjson', 'JSON, one entry a line'],
  ] as const
  const content = html`${select('Format', 'format', formats, 'csv')}<button class="quiet">Export the whole log</button>`
  return html`<section class="card"><h2>Export</h2><p>The export is an entry of the log itself.</p>${actionForm(request, '/admin/audit/export', content)}</section>`
}
