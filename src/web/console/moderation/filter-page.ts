import type { FastifyRequest } from 'fastify'
import type { FilterDryRun } from '../../../domain/moderation/filters/dry-run.js'
import type { FilterDetails } from '../../../domain/moderation/filters/filters.js'
import type { FilterHit, StoredFilter } from '../../../persistence/moderation/filters.js'
import { html, type Markup } from '../../pages/markup.js'
import type { ConsolePage } from '../console-page.js'
import { actionForm, reasonField, textField } from '../form-parts.js'
import { formatCount, formatTime } from '../quantities.js'
import { detailList, listCard, stateBadge } from '../tables.js'
import { operationProgress } from '../task-progress.js'
import { changeFilterForm } from './filter-form.js'

const STATE_COLOURS = { trial: 'warn', active: 'good', off: 'neutral' } as const

export function filterState({ state }: Pick<StoredFilter, 'state'>): Markup {
  return stateBadge(state, STATE_COLOURS[state])
}

/** The page of a filter: its hits, and the forms. */
export function filterPage(request: FastifyRequest, filter: FilterDetails): ConsolePage {
  const { id, days, latest } = filter
  const version = String(filter.version)
  const byDay = {
    caption: 'Hits by day',
    columns: [{ title: 'Day' }, { title: 'Hits', kind: 'number' as const }],
    rows: days.map(({ day, hits }) => [day, formatCount(hits)]),
  }
  const form = (action: string, fields: Markup) =>
    actionForm(request, `/admin/filters/${id}/${action}`, fields, { version })
  return {
    title: `Filter ${id}: ${filter.state}`,
    content: html`${progressOf(filter)}<section class="card">${factsOf(filter)}</section>
<section class="card"><h2>Hits</h2>${listCard(byDay, { empty: 'No hits in the last 30 days.' })}${latest.length > 0 && listCard(hitTable(latest), { empty: '' })}</section>
<section class="card choices"><div><h2>Change</h2>${changeFilterForm(request, id, filter, version)}</div>
<div><h2>Apply to stored content</h2><p>Flags or hides the posts and comments of the last days that the dry run lists.</p>${form('apply', html`${textField('Days (1 to 30)', 'days', '7', { type: 'number' })}${reasonField()}<button class="danger">Apply…</button>`)}
<h2>Remove</h2><p>Its matches are deleted too. Its effects stay.</p>${form('remove', html`${reasonField()}<button class="danger">Remove the filter</button>`)}</div></section>`,
  }
}

function progressOf({ task }: FilterDetails): Markup | '' {
  if (task === undefined) return ''
  return html`${operationProgress([task], ({ reason }) => html`Application to what is stored: <bdi>${reason}</bdi>`)}`
}

function factsOf(filter: FilterDetails): Markup {
  const { kind, value, fields, origin, accountAgeDays } = filter
  return detailList([
    ['State', filterState(filter)],
    ['Kind', kind.replaceAll('_', ' ')],
    ['Value', html`<bdi>${value}</bdi>`],
    ['Where', fields.join(', ')],
    ['Authors', origin],
    ['Known for less than', accountAgeDays === null ? 'any time' : `${accountAgeDays} days`],
    ['Followed people', filter.exemptFollowed ? 'exempt' : 'not exempt'],
    ['Private content', filter.isPrivate ? 'too, without text' : 'no'],
    ['Action', filter.action],
    ['Hits in 30 days', formatCount(filter.hitsIn30Days)],
    ['Made', html`${formatTime(filter.createdAt)} by <bdi>${filter.createdBy}</bdi>`],
  ])
}

function hitTable(hits: readonly FilterHit[]) {
  return {
    caption: 'The latest hits',
    columns: [
      { title: 'Content' },
      { title: 'Author' },
      { title: 'Time' },
      { title: 'Effect' },
      { title: 'Text', kind: 'wide' as const },
    ],
    rows: hits.map(({ targetType, targetGuid, authorAddress, at, effect, excerpt }) => [
      contentLink(targetType, targetGuid),
      html`<bdi>${authorAddress}</bdi>`,
      formatTime(at),
      effect,
      excerpt === null ? 'private' : html`<bdi>${excerpt}</bdi>`,
    ]),
  }
}

/** The hits of a dry run. */
export function dryRunCard({ hits, authors, pods, followed, samples, scannedFrom, complete }: FilterDryRun): Markup {
  const table = {
    caption: `Samples, ${formatCount(samples.length)} of ${formatCount(hits)} hits`,
    columns: [{ title: 'Content' }, { title: 'Author' }, { title: 'Field' }, { title: 'Text', kind: 'wide' as const }],
    rows: samples.map(({ type, guid, author, field, excerpt }) => [
      contentLink(type, guid),
      html`<bdi>${author}</bdi>`,
      field,
      excerpt === null ? 'private' : html`<bdi>${excerpt}</bdi>`,
    ]),
  }
  return html`<section class="card"><p>Nothing has been changed.</p>${detailList([
    ['Hits', formatCount(hits)],
    ['Authors', formatCount(authors)],
    ['Pods', formatCount(pods)],
    ['Authors whom a local user follows', formatCount(followed)],
    ['Read from', html`${formatTime(scannedFrom)}${!complete && '; older content of these days was not read'}`],
  ])}${listCard(table, { empty: 'The filter finds nothing.' })}</section>`
}

function contentLink(type: string, guid: string): Markup {
  if (type !== 'post' && type !== 'comment') return html`${type}`
  return html`<a href="/admin/content/${encodeURIComponent(guid)}?type=${type}">${type}</a>`
}
