import type { FastifyRequest } from 'fastify'
import type { CaseDetails, ListedCase } from '../../../domain/moderation/cases.js'
import type { ForwardedCase } from '../../../domain/moderation/forward-case.js'
import type { CaseEvent, CaseReport } from '../../../persistence/moderation/cases.js'
import type { ListPage } from '../../../persistence/sql/id-page.js'
import { isTicked } from '../../forms/form-fields.js'
import { html, type Markup } from '../../pages/markup.js'
import type { ConsolePage } from '../console-page.js'
import { actionForm, checkbox, hiddenField, reasonField, select, textArea } from '../form-parts.js'
import { idNavigation } from '../pager.js'
import { formatCount, formatTime } from '../quantities.js'
import { detailList } from '../tables.js'
import { caseState } from './case-state.js'
import { evidenceBlock } from './evidence.js'
import { authorChoices } from './person-actions.js'
import { undoForm } from './undo-form.js'

/** A report of another user does not make a form outdated: it changes no decision of a moderator. */
function versionOfCase({ decisions }: CaseDetails): string {
  return String(decisions)
}

/** The page of a case: the reported content, its reports, the actions, and the forms. */
export function casePage(request: FastifyRequest, details: CaseDetails): ConsolePage {
  const isClosed = details.closedAt !== null
  return {
    title: `Case ${details.id}: ${details.state}`,
    content: html`<section class="card"><h2>Reported ${details.targetType}</h2>${factsOf(details)}
${evidenceBlock(details.text)}${pictures(details)}</section>
${!isClosed && actions(request, details)}<section class="card"><h2>Reports</h2>${reports(details)}</section>
<section class="card"><h2>Actions</h2>${actionHistory(request, details)}</section>
<section class="card"><h2>History</h2>${history(details)}</section>
<section class="card choices">${isClosed ? reopenForm(request, details) : caseForms(request, details)}</section>`,
  }
}

function factsOf(details: CaseDetails): Markup {
  const { targetType, targetGuid, authorGuid, authorAddress, authorName } = details
  return detailList([
    ['State', html`${caseState(details)}${details.takenAt !== null && html`, since ${formatTime(details.takenAt)}`}`],
    [
      'Author',
      authorGuid === null
        ? 'deleted'
        : html`<bdi>${authorName ?? ''}</bdi> <a href="/admin/people/${encodeURIComponent(authorGuid)}"><bdi>${authorAddress}</bdi></a>`,
    ],
    ['Visible to', details.public ? 'everyone' : 'chosen people only'],
    ['Written', formatTime(details.targetCreatedAt)],
    ...(details.targetDeleted === null ? [] : [['Deleted', words[details.targetDeleted]] as const]),
    ['Guid', html`<bdi>${targetGuid}</bdi>`],
    ['Links', html`${linksTo(details)}`],
    ...(targetType !== 'cluster'
      ? []
      : [['Cluster', html`<a href="/admin/clusters/${targetGuid}">Items and authors</a>`] as const]),
  ])
}

const words = {
  author: 'by the author',
  moderator: 'by a moderator',
  account_closed: 'with the account of the author',
  purge: 'permanently, by an admin',
} as const

function linksTo({
  public: isPublic,
  targetType,
  targetGuid,
  parentGuid,
  authorGuid,
  targetDeleted,
  isHidden,
}: ListedCase): Markup {
  const guid = encodeURIComponent(targetGuid)
  const post = targetType === 'comment' ? `${encodeURIComponent(parentGuid ?? '')}#${guid}` : guid
  const isContent = targetType === 'post' || targetType === 'comment'
  const isThere = isPublic && targetDeleted === null && !isHidden
  const isStored = targetDeleted === null || targetDeleted === 'moderator'
  return html`${isContent && isThere && html`<a href="/posts/${post}">The public page</a> · `}${
    isContent && isStored && html`<a href="/admin/content/${guid}?type=${targetType}">As it is stored now</a>`
  }${targetType === 'person' && authorGuid !== null && html`<a href="/people/${encodeURIComponent(authorGuid)}">The public profile</a>`}${
    targetType === 'message' && 'A private message has no page.'
  }`
}

function pictures({ id, photoGuids }: CaseDetails): Markup | false {
  return (
    photoGuids.length > 0 &&
    html`<p>${formatCount(photoGuids.length)} ${photoGuids.length === 1 ? 'picture was' : 'pictures were'} attached. ${photoGuids.map(
      (guid, index) =>
        html`<a href="/admin/reports/${id}/pictures/${encodeURIComponent(guid)}">Picture ${index + 1}</a> `,
    )}</p>`
  )
}

function reports({ id, reports: { items, hasOlder }, kind }: CaseDetails): Markup {
  if (items.length === 0) return html`<p>Opened by a ${kind}, not by a report.</p>`
  return html`${reportList(items.toReversed())}${hasOlder && html`<p><a href="/admin/reports/${id}/reports">All reports</a></p>`}`
}

function history({ id, events: { items, hasOlder } }: CaseDetails): Markup {
  return html`${eventList(items.toReversed())}${hasOlder && html`<p><a href="/admin/reports/${id}/history">The whole history</a></p>`}`
}

function reportList(own: readonly CaseReport[]): Markup {
  return html`<ul class="history list">${own.map(
    ({ reporterGuid, reporterName, reason, createdAt }) =>
      html`<li><a href="/admin/people/${encodeURIComponent(reporterGuid)}"><bdi>${reporterName}</bdi></a>, ${formatTime(createdAt)}: <bdi>${reason}</bdi></li>\n`,
  )}</ul>`
}

function eventList(events: readonly CaseEvent[]): Markup {
  return html`<ul class="history">${events.map(
    ({ at, event, actorName, text }) =>
      html`<li>${formatTime(at)}: ${event.replaceAll('_', ' ')}${actorName !== null && html` by <bdi>${actorName}</bdi>`}${
        text !== null && html`: <bdi>${text}</bdi>`
      }</li>\n`,
  )}</ul>`
}

/** One page of the reports of a case, newest first. */
export function caseReportsPage(id: number, page: ListPage<CaseReport>): ConsolePage {
  return listPage(
    id,
    `Case ${id}: reports`,
    html`${reportList(page.items)}${idNavigation(`/admin/reports/${id}/reports`, {}, page)}`,
  )
}

/** One page of the history of a case, newest first. */
export function caseHistoryPage(id: number, page: ListPage<CaseEvent>): ConsolePage {
  return listPage(
    id,
    `Case ${id}: history`,
    html`${eventList(page.items)}${idNavigation(`/admin/reports/${id}/history`, {}, page)}`,
  )
}

function listPage(id: number, title: string, list: Markup): ConsolePage {
  return {
    title,
    content: html`<section class="card"><h2>Newest first</h2>${list}<p><a href="/admin/reports/${id}">Back to the case</a></p></section>`,
  }
}

function actionHistory(request: FastifyRequest, { id, actions: taken }: CaseDetails): Markup {
  if (taken.length === 0) return html`<p>No action was taken.</p>`
  return html`<ul class="history list">${taken.map(
    (action) =>
      html`<li>${formatTime(action.createdAt)}: <b>${action.kind}</b>, <bdi>${action.reason}</bdi>${
        action.undoneById !== null ? ' (undone)' : action.canBeUndone && undoForm(request, action, id)
      }</li>\n`,
  )}</ul>`
}

/** Private content that no user has reported does not exist for moderators, although a filter has opened a case. */
function isContentShown({ targetType, targetDeleted, public: isPublic, reportCount }: ListedCase): boolean {
  const isContent = targetType === 'post' || targetType === 'comment'
  return isContent && targetDeleted === null && (isPublic || reportCount > 0)
}

function isAuthorGone({ authorId, targetType, targetDeleted }: ListedCase): boolean {
  return authorId === null || targetDeleted === 'account_closed' || (targetType === 'person' && targetDeleted !== null)
}

const MILD_ACTIONS: ReadonlySet<string> = new Set(['warn', 'silence'])

/** Actions on the content and on its author in one form. The first button is the mildest: the Enter key presses it. */
function actions(request: FastifyRequest, details: CaseDetails): Markup | false {
  const { id, targetType, targetGuid, authorGuid } = details
  const isContent = isContentShown(details)
  const isAuthorOpen = authorGuid !== null && !isAuthorGone(details)
  if (!isContent && !isAuthorOpen) return false
  const person = `/admin/people/${encodeURIComponent(authorGuid ?? '')}`
  const content = `/admin/content/${encodeURIComponent(targetGuid)}`
  const isLocal = !isRemote(request, details)
  const kinds = authorChoices(isLocal)
  const fields = html`${hiddenField('case_id', String(id))}${hiddenField('type', targetType)}${reasonField()}${
    isContent && isAuthorOpen && select('And the author', 'author', [['', 'nothing'], ...kinds])
  }${isLocal && isAuthorOpen && textArea('Text of a warning, which the author reads', 'text', { required: false })}${checkbox(
    'Resolve the case afterwards',
    'resolve',
    { isTicked: true },
  )}`
  const buttons = isContent
    ? html`<button>Hide the ${targetType}</button><button class="danger" formaction="${content}/remove">Remove the ${targetType}</button>`
    : html`${kinds.map(([kind, text]) => html`<button${!MILD_ACTIONS.has(kind) && html` class="danger"`} formaction="${person}/${kind}">${text}</button>`)}`
  return html`<section class="card"><h2>Take action</h2>${actionForm(
    request,
    isContent ? `${content}/hide` : `${person}/${kinds[0]?.[0] ?? 'silence'}`,
    html`${fields}${hiddenField('author_guid', authorGuid ?? undefined)}<div class="buttons">${buttons}</div>`,
    { version: versionOfCase(details) },
  )}</section>\n`
}

function caseForms(request: FastifyRequest, details: CaseDetails): Markup {
  const { id, state, takenBy } = details
  const version = versionOfCase(details)
  const form = (action: string, content: Markup) =>
    actionForm(request, `/admin/reports/${id}/${action}`, content, { version })
  const isOwn = takenBy === request.console.staff.username
  return html`<div><h2>Take</h2>${
    state === 'open'
      ? form('take', html`<button class="quiet">Take the case</button>`)
      : isOwn
        ? form('release', html`<button class="quiet">Release the case</button>`)
        : form(
            'take',
            html`${checkbox(html`Take it over from <bdi>${takenBy}</bdi>`, 'force')}<button class="quiet">Take the case</button>`,
          )
  }</div>
${isRemote(request, details) && html`<div><h2>Forward</h2>${form('forward', html`${checkbox('With the reasons of the reports', 'include_reason')}<button class="quiet">Show the text</button>`)}</div>`}
<div><h2>Note</h2>${form('notes', html`${textArea('Note for moderators', 'text')}<button class="quiet">Add the note</button>`)}</div>
<div><h2>Resolve</h2>${form('resolve', html`${reasonField()}${checkbox('No action is needed', 'without_action')}<button class="quiet">Resolve</button>`)}</div>
<div><h2>Dismiss</h2>${form('dismiss', html`${reasonField()}${checkbox('Only count further reports', 'ignore_further')}<button class="quiet">Dismiss</button>`)}</div>`
}

function isRemote({ services }: FastifyRequest, { authorAddress }: CaseDetails): boolean {
  return authorAddress !== null && services.config.host !== authorAddress.split('@')[1]
}

/** The text for the operator of the author's pod, and the known ways to them. */
export function forwardPage(request: FastifyRequest, id: number, forwarded: ForwardedCase): ConsolePage {
  const { text, podmin, canConverse, mailto } = forwarded
  const isReasonIncluded = isTicked(request, 'include_reason')
  const send = html`${hiddenField('via', 'conversation')}${hiddenField('include_reason', isReasonIncluded ? 'true' : undefined)}<button>Send as a conversation of the podmin account</button>`
  return {
    title: `Case ${id}: text for the operator of the other pod`,
    content: html`<section class="card"><p>Nothing has been sent. The text names no reporter.</p>
<p class="text"><bdi>${text}</bdi></p></section>
<section class="card"><h2>Ways</h2><p>Operator: ${podmin === null ? 'not known' : html`<bdi>${podmin}</bdi>`}. <a href="${mailto}">Write an e-mail with this text</a></p>
${canConverse ? actionForm(request, `/admin/reports/${id}/forward`, send) : html`<p>The podmin account of this pod cannot send a message to the operator, who does not share with it.</p>`}
<p><a href="/admin/reports/${id}">Back to the case</a></p></section>`,
  }
}

function reopenForm(request: FastifyRequest, details: CaseDetails): Markup {
  const content = html`${reasonField()}<button class="quiet">Open the case again</button>`
  return html`<div><h2>Open again</h2>${actionForm(request, `/admin/reports/${details.id}/reopen`, content, { version: versionOfCase(details) })}</div>`
}
