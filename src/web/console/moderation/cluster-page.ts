import type { FastifyRequest } from 'fastify'
import type { ClusterDetails, ListedCluster, ShownAuthor } from '../../../domain/moderation/clusters/clusters.js'
import type { CleanPreview } from '../../../domain/moderation/clusters/plan-cleaning.js'
import { html, type Markup } from '../../pages/markup.js'
import { previewList } from '../actions.js'
import type { ConsolePage } from '../console-page.js'
import { embeddedFields } from '../embedded-fields.js'
import { actionForm, buildChoices, checkbox, hiddenField, reasonField, select } from '../form-parts.js'
import { formatCount, formatTime } from '../quantities.js'
import { detailList, listCard, stateBadge } from '../tables.js'
import { operationProgress } from '../task-progress.js'

export const CLEAN_AUTHORS = ['none', 'silence', 'block', 'lock'] as const
export const CLEAN_PODS = ['none', 'limited', 'blocked'] as const

const STATE_COLOURS = {
  open: 'warn',
  cleaning: 'warn',
  cleaned: 'good',
  restoring: 'warn',
  dismissed: 'neutral',
} as const

export function clusterState({ state }: ListedCluster): Markup {
  return stateBadge(state, STATE_COLOURS[state])
}

/** The page of a cluster: its items and authors, and the parts of its cleaning with a tick each. */
export function clusterPage(request: FastifyRequest, cluster: ClusterDetails): ConsolePage {
  const { id, kind, label, caseId } = cluster
  const details = detailList([
    ['State', clusterState(cluster)],
    ['In common', html`${kind}: <bdi>${label}</bdi>`],
    ['Items', formatCount(cluster.itemCount)],
    ['Authors', formatCount(cluster.authorCount)],
    ['Pods', formatCount(cluster.podCount)],
    ['Time', html`${formatTime(cluster.firstAt)} to ${formatTime(cluster.lastAt)}`],
    ...(caseId === null ? [] : [['Case', html`<a href="/admin/reports/${caseId}">${caseId}</a>`] as const]),
  ])
  return {
    title: `Spam cluster ${id}: ${cluster.state}`,
    content: html`${progressOf(cluster)}<section class="card">${details}</section>
${
  cluster.state === 'open'
    ? html`<section class="card"><h2>Clean</h2>${cleanForm(request, cluster)}</section>
<section class="card"><h2>Dismiss</h2><p>This is not spam. Content with this key will not open a cluster for a week.</p>${dismissForm(request, cluster)}</section>`
    : html`<section class="card"><h2>Authors</h2>${listCard(authorTable(cluster.authors), { empty: 'No author is stored.' })}
<p><a href="/admin/audit?target=${id}">What was done</a></p></section>`
}
<section class="card"><h2>Items</h2>${listCard(itemTable(cluster), { empty: 'No item is still stored.' })}</section>`,
  }
}

const IN_PROGRESS = {
  cleaning: 'This cluster is being cleaned: some items are visible until the work is done.',
  restoring: 'The cleaning is being undone: some items are hidden until the work is done.',
} as const

function progressOf({ state, task }: ClusterDetails): Markup | '' {
  if (state !== 'cleaning' && state !== 'restoring') return ''
  return html`<section class="card"><p role="status">${IN_PROGRESS[state]} Reload the page for the progress.</p></section>
${task !== undefined && operationProgress([task], ({ reason }) => html`<bdi>${reason}</bdi>`)}`
}

function cleanForm(request: FastifyRequest, cluster: ClusterDetails): Markup {
  const { id, authors, caseId } = cluster
  const fields = html`${hiddenField('case_id', caseId === null ? undefined : String(caseId))}
${checkbox('Hide all items', 'hide', { isTicked: true })}
${checkbox('Remove items that a local person may retract: final', 'remove')}
${checkbox('Add a filter that hides later content of this kind', 'filter', { isTicked: true })}
${select('Authors', 'authors', buildChoices(CLEAN_AUTHORS), 'none')}${select('Pods of the authors', 'pods', buildChoices(CLEAN_PODS), 'none')}
<p class="small">Authors whom a local user follows, and those known for 30 days, are not restricted. No local author is blocked: “block” silences them, “lock” locks their accounts and blocks the other authors.</p>
${listCard(authorTable(authors, true), { empty: 'No author is stored.' })}
${reasonField()}<div class="buttons"><button class="quiet" formaction="/admin/clusters/${id}/preview">Preview</button><button>Clean</button></div>`
  return actionForm(request, `/admin/clusters/${id}/clean`, fields, { version: cluster.state })
}

function dismissForm(request: FastifyRequest, { id, state }: ClusterDetails): Markup {
  const content = html`${reasonField()}<button class="quiet">Dismiss the cluster</button>`
  return actionForm(request, `/admin/clusters/${id}/dismiss`, content, { version: state })
}

/** Table of the authors of a cluster. The items of an author without a tick stay. */
function authorTable(authors: readonly ShownAuthor[], isForm = false) {
  return {
    caption: `Authors with most items, ${formatCount(authors.length)}`,
    columns: [
      { title: 'Author' },
      { title: 'Items', kind: 'number' as const },
      { title: 'First seen' },
      { title: 'Followed here' },
      { title: 'Restricted by a cleaning' },
      ...(isForm ? [{ title: 'Leave out' }] : []),
    ],
    rows: authors.map(({ guid, address, items, firstSeenAt, isFollowed, isProposed, isStaff }) => [
      html`<a href="/admin/people/${encodeURIComponent(guid)}"><bdi>${address}</bdi></a>`,
      formatCount(items),
      formatTime(firstSeenAt),
      isFollowed ? 'yes' : 'no',
      isProposed && !isStaff ? 'yes' : 'no',
      ...(isForm
        ? [checkbox(html`<bdi>${address}</bdi>`, 'except[]', { value: guid, isTicked: isFollowed || isStaff })]
        : []),
    ]),
  }
}

function itemTable({ items }: ClusterDetails) {
  return {
    caption: `The newest items, ${formatCount(items.length)}`,
    columns: [
      { title: 'Item' },
      { title: 'Author' },
      { title: 'State' },
      { title: 'Retractable' },
      { title: 'Text', kind: 'wide' as const },
    ],
    rows: items.map(({ type, guid, author, isHidden, isRetractable, text }) => [
      html`<a href="/admin/content/${encodeURIComponent(guid)}?type=${type}">${type}</a>`,
      html`<bdi>${author}</bdi>`,
      isHidden ? stateBadge('hidden', 'warn') : 'visible',
      isRetractable ? 'yes' : 'no',
      html`<bdi>${text.slice(0, EXCERPT)}</bdi>`,
    ]),
  }
}

const EXCERPT = 200

/** The effects of the ticked parts, with the form. */
export function previewPage(request: FastifyRequest, id: number, preview: CleanPreview): ConsolePage {
  const hiddenFields = embeddedFields(request.body, ['form', 'idempotency_key'])
  return {
    title: `Preview: ${formatCount(preview.hide + preview.remove)} items`,
    content: html`<section class="card"><p>Nothing has been changed yet.</p>${previewList(preview)}
${actionForm(request, `/admin/clusters/${id}/clean`, html`${hiddenFields}<button>Clean</button>`, { layout: 'buttons' })}
<p><a href="/admin/clusters/${id}">Back to the cluster</a></p></section>`,
  }
}
