import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { applyFilter } from '../../../domain/moderation/filters/apply-filter.js'
import { dryRunFilter } from '../../../domain/moderation/filters/dry-run.js'
import {
  addFilter,
  changeFilter,
  type FilterDetails,
  listModerationFilters,
  readModerationFilter,
  removeFilter,
} from '../../../domain/moderation/filters/filters.js'
import type { ListedFilter } from '../../../persistence/moderation/filters.js'
import { formNumber, pathId } from '../../forms/form-fields.js'
import { html } from '../../pages/markup.js'
import { addFormAction, type FormAction, pathWithParameters, useCaseArguments } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { idNavigation, idPageIn } from '../pager.js'
import { formatCount, formatTime } from '../quantities.js'
import { listCard } from '../tables.js'
import { readActionOptions } from './case-form.js'
import { newFilterForm, readNewFilter } from './filter-form.js'
import { dryRunCard, filterPage, filterState } from './filter-page.js'

/** `/admin/filters`: filters with their hits, and the dry run of a new one. */
export const filterRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/filters', { config, schema }, async (request, reply) => {
    const page = await listModerationFilters(request.services, request.console.actor, idPageIn(request))
    const empty = html`No filters. An example: the kind <code>link_host</code> with the value <code>spam.example</code> finds links to this host and its subdomains.`
    return sendConsolePage(request, reply, {
      title: page.items.length === 0 ? 'Filters: none' : 'Filters',
      content: html`<section class="card">${listCard(filterTable(page.items), { empty, pages: idNavigation('/admin/filters', {}, page) })}</section>
<section class="card"><h2>A new filter</h2>${newFilterForm(request)}</section>`,
    })
  })

  app.get('/admin/filters/:id', { config, schema }, async (request, reply) => {
    const moderationFilter = await readModerationFilter(request.services, request.console.actor, pathId(request))
    return sendConsolePage(request, reply, filterPage(request, moderationFilter))
  })

  /** Shows the content that the filter would have hit. Nothing changes; therefore no other form is answered with a page. */
  app.post('/admin/filters/dry_run', { config, schema }, async (request, reply) => {
    const filter = readNewFilter(request)
    const days = formNumber(request, 'days') ?? 7
    const dryRun = await dryRunFilter(request.services, request.console.actor, filter, { days })
    return sendConsolePage(request, reply, {
      title: `Dry run: ${formatCount(dryRun.hits)} hits in ${formatCount(days)} days`,
      content: html`${dryRunCard(dryRun)}
<section class="card"><h2>The filter</h2>${newFilterForm(request, filter, days)}</section>`,
    })
  })

  addFilterActions(app)
}

function addFilterActions(app: FastifyInstance): void {
  const page = pathWithParameters('/admin/filters/:id')
  const add = (name: string, action: Pick<FormAction, 'title' | 'flash' | 'run'> & Partial<FormAction>) =>
    addFormAction(app, {
      path: `/admin/filters/:id/${name}`,
      power: 'moderation',
      page,
      current: async (request) => {
        const moderationFilter = await readModerationFilter(...useCaseArguments(request))
        return { version: versionOfFilter(moderationFilter), state: filterState(moderationFilter) }
      },
      ...action,
    })

  addFormAction(app, {
    path: '/admin/filters',
    power: 'moderation',
    title: 'Add the filter',
    flash: 'filter_added',
    page: '/admin/filters',
    run: (request) =>
      addFilter(request.services, request.console.actor, readNewFilter(request), readActionOptions(request)),
  })
  add('change', {
    title: 'Change the filter',
    flash: 'filter_changed',
    run(request) {
      const change = { id: pathId(request), ...readNewFilter(request) }
      return changeFilter(request.services, request.console.actor, change, readActionOptions(request))
    },
  })
  add('remove', {
    title: 'Remove the filter',
    flash: 'filter_removed',
    page: '/admin/filters',
    run: (request) => removeFilter(...useCaseArguments(request), readActionOptions(request)),
  })
  add('apply', {
    title: 'Apply the filter',
    flash: 'filter_applied',
    label: (_request, { hits }) => String(hits),
    run: (request, confirm) =>
      applyFilter(...useCaseArguments(request), {
        days: formNumber(request, 'days'),
        confirm,
        ...readActionOptions(request),
      }),
  })
}

function versionOfFilter({ version }: FilterDetails): string {
  return String(version)
}

function filterTable(filters: readonly ListedFilter[]) {
  return {
    caption: 'Filters, newest first, with their hits of 30 days',
    columns: [
      { title: 'Filter' },
      { title: 'Kind' },
      { title: 'Action' },
      { title: 'State' },
      { title: 'Hits', kind: 'number' as const },
      { title: 'By' },
      { title: 'Changed' },
    ],
    rows: filters.map((filter) => [
      html`<a href="/admin/filters/${filter.id}"><bdi>${filter.value}</bdi></a>`,
      filter.kind.replaceAll('_', ' '),
      filter.action,
      filterState(filter),
      formatCount(filter.hitsIn30Days),
      html`<bdi>${filter.createdBy}</bdi>`,
      formatTime(filter.changedAt),
    ]),
  }
}
