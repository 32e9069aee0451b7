import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import {
  findLastReport,
  type ListedCase,
  listCaseHistory,
  listModerationCases,
  listModerationReports,
  readModerationCase,
  readOverview,
} from '../../../domain/moderation/cases.js'
import { MODERATION_LIMITS } from '../../../domain/moderation/limits.js'
import { CASE_STATES, CASE_TARGETS, type CaseFilter } from '../../../persistence/moderation/cases.js'
import { CASE_CURSOR, caseCursors, readCasePage } from '../../api/case-paging.js'
import { pathId } from '../../forms/form-fields.js'
import { html, type Markup } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { sendConsolePage } from '../console-page.js'
import { buildChoices, filterForm, moreText, select } from '../form-parts.js'
import { cursorNavigation, idPageIn } from '../pager.js'
import { formatCount, formatTime } from '../quantities.js'
import { listCard } from '../tables.js'
import { caseHistoryPage, casePage, caseReportsPage } from './case-page.js'
import { addCasePictures } from './case-pictures.js'
import { caseState } from './case-state.js'
import { addReportActions } from './report-actions.js'

const { pageItems } = MODERATION_LIMITS

/** `/admin/reports`: the cases of reports, filters and clusters. */
export const reportRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/reports', { config, schema }, async (request, reply) => {
    const { actor } = request.console
    const query = queryIn(request)
    const page = readCasePage(CASE_CURSOR.exec(queryText(request, 'cursor') ?? '') ?? undefined, pageItems)
    const [cases, waiting] = await Promise.all([
      listModerationCases(request.services, actor, filterOf(query), page),
      readOverview(request.services, actor),
    ])
    const isEmpty = cases.items.length === 0
    const isWholeList = query.state === undefined && page.after === undefined
    const empty = isEmpty && isWholeList ? await noOpenReports(request) : 'No reports match.'
    const number = waiting.cases.open + waiting.cases.taken
    return sendConsolePage(request, reply, {
      title: `Reports: ${number === 0 ? 'none waiting' : `${formatCount(number)} waiting`}`,
      content: html`<section class="card">${filterForm('/admin/reports', filterFields(query), moreFilters(query))}
${listCard(caseTable(cases.items), { empty, pages: cursorNavigation('/admin/reports', query, caseCursors(cases)) })}</section>`,
    })
  })

  app.get('/admin/reports/:id', { config, schema }, async (request, reply) => {
    const moderationCase = await readModerationCase(request.services, request.console.actor, pathId(request))
    return sendConsolePage(request, reply, casePage(request, moderationCase))
  })

  app.get('/admin/reports/:id/reports', { config, schema }, async (request, reply) => {
    const { services, console: access } = request
    const id = pathId(request)
    const reports = await listModerationReports(services, access.actor, id, idPageIn(request))
    return sendConsolePage(request, reply, caseReportsPage(id, reports))
  })

  app.get('/admin/reports/:id/history', { config, schema }, async (request, reply) => {
    const { services, console: access } = request
    const id = pathId(request)
    const events = await listCaseHistory(services, access.actor, id, idPageIn(request))
    return sendConsolePage(request, reply, caseHistoryPage(id, events))
  })

  addReportActions(app)
  addCasePictures(app)
}

async function noOpenReports({ services, console: access }: FastifyRequest): Promise<Markup> {
  const last = await findLastReport(services, access.actor)
  return html`No open reports.${last !== undefined && html` The last report came on ${formatTime(last)}.`}`
}

const NAMES = ['state', 'type', 'author', 'pod', 'local', 'taken_by', 'reporter'] as const
type Query = Readonly<Record<(typeof NAMES)[number], string | undefined>>

function queryIn(request: FastifyRequest): Query {
  return Object.fromEntries(NAMES.map((name) => [name, queryText(request, name)?.trim()])) as Query // has each name
}

function filterOf({ state, type, author, pod, local, taken_by: takenBy, reporter }: Query): CaseFilter {
  const knownState = CASE_STATES.find((each) => each === state)
  return {
    states: state === 'all' ? undefined : knownState === undefined ? ['open', 'taken'] : [knownState],
    type: CASE_TARGETS.find((each) => each === type),
    isLocal: local === undefined ? undefined : local === 'true',
    author,
    domain: pod?.toLowerCase(),
    takenBy,
    reporter,
  }
}

function filterFields(query: Query): readonly Markup[] {
  return [
    select('State', 'state', [['', 'open or taken'], ...buildChoices(CASE_STATES), ['all', 'all']], query.state),
    select('Type', 'type', buildChoices(CASE_TARGETS, 'all'), query.type),
    select('Author', 'local', LOCAL, query.local),
  ]
}

function moreFilters(query: Query) {
  return [
    moreText('Author (name, address or guid)', 'author', query.author),
    moreText('Pod of the author', 'pod', query.pod),
    moreText('Taken by', 'taken_by', query.taken_by),
    moreText('Reporter (name, address or guid)', 'reporter', query.reporter),
  ]
}

const LOCAL = [
  ['', 'all'],
  ['true', 'of this pod'],
  ['false', 'of other pods'],
] as const

function caseTable(cases: readonly ListedCase[]) {
  return {
    caption: 'Cases: open before taken, more reporters first, then the oldest',
    columns: [
      { title: 'Case' },
      { title: 'State' },
      { title: 'Author' },
      { title: 'Reporters', kind: 'number' as const },
      { title: 'Reports', kind: 'number' as const },
      { title: 'First report' },
      { title: 'Last report' },
    ],
    rows: cases.map((each) => [
      html`<a href="/admin/reports/${each.id}">${each.id}: ${each.targetType}${!each.public && ', private'}</a>`,
      caseState(each),
      html`<bdi>${each.authorAddress ?? '–'}</bdi>`,
      formatCount(each.reporterCount),
      each.kind === 'report' ? formatCount(each.reportCount) : each.kind,
      formatTime(each.firstReportedAt),
      formatTime(each.lastReportedAt),
    ]),
  }
}
