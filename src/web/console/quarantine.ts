import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import {
  dropQuarantine,
  isReleasable,
  listQuarantine,
  listQuarantineTasks,
  readQuarantined,
  releaseQuarantine,
  replayQuarantine,
} from '../../domain/operations/quarantine.js'
import { Refusal } from '../../domain/refusals.js'
import {
  countQuarantinedByFault,
  type QuarantinedMessage,
  type QuarantineFilter,
} from '../../persistence/inbound/quarantine.js'
import { formText } from '../forms/form-text.js'
import { html, type Markup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { RequestFault } from '../server/request-faults.js'
import { addFormAction, type FormAction, ShowPage, showAfterChange } from './actions.js'
import { sendConsolePage } from './console-page.js'
import { actionForm, filterForm, hiddenField, reasonField, textField } from './form-parts.js'
import { idNavigation, idPageIn } from './pager.js'
import { formatBytes, formatCount, formatTime } from './quantities.js'
import { dataTable, detailList, stateBadge } from './tables.js'
import { operationProgress } from './task-progress.js'
import { traceLink } from './traces.js'

interface Selection {
  readonly id?: string | undefined
  readonly fault?: string | undefined
  readonly host?: string | undefined
}

/** `/admin/quarantine`: messages of other pods that were rejected. No page shows a message's content. */
export const quarantineRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'administration' } as const
  const schema = { hide: true }

  app.get('/admin/quarantine', { config, schema }, async (request, reply) => {
    const selection = { fault: queryText(request, 'fault'), host: queryText(request, 'host')?.toLowerCase() }
    const [page, byFault, operations] = await Promise.all([
      listQuarantine(request.services, request.console.actor, filterOf(selection), idPageIn(request)),
      countQuarantinedByFault(request.services.db),
      listQuarantineTasks(request.services, request.console.actor),
    ])
    const { items } = page
    const total = byFault.reduce((sum, group) => sum + group.count, 0)
    const isFiltered = selection.fault !== undefined || selection.host !== undefined
    return sendConsolePage(request, reply, {
      title: `Rejected messages: ${total === 0 ? 'none' : formatCount(total)}`,
      content: html`${operationProgress(operations, wordsOfTask)}<section class="card"><p>A sample of the rejected messages of other pods from the last 14 days.</p>
${filterForm('/admin/quarantine', html`${textField('Fault', 'fault', selection.fault)}${textField('Claimed host', 'host', selection.host)}`)}
${items.length === 0 ? html`<p>No rejected messages match.</p>` : listOf(items)}
${idNavigation('/admin/quarantine', { ...selection }, page)}
${items.length > 0 && isFiltered && actionsFor(request, selection, { object: 'all that match', fault: selection.fault })}</section>
${
  byFault.length > 0 &&
  html`<section class="card">${dataTable({
    caption: 'Rejected messages by fault',
    columns: [{ title: 'Fault' }, { title: 'Messages', kind: 'number' }],
    rows: byFault.map((group) => [
      html`<a href="/admin/quarantine?fault=${encodeURIComponent(group.fault)}">${group.fault}</a>`,
      formatCount(group.count),
    ]),
  })}</section>`
}`,
    })
  })

  app.get('/admin/quarantine/:id', { config, schema }, async (request, reply) => {
    const { id } = request.params as { readonly id: string } // part of the route
    const message = await readQuarantined(request.services, request.console.actor, idIn(id)).catch((error) => {
      throw error instanceof Refusal ? new RequestFault(404, error.message) : error
    })
    return sendConsolePage(request, reply, {
      title: `Rejected message ${id}: ${message.result ?? message.state}`,
      content: html`<section class="card">${factsOf(message)}
${actionsFor(request, { id }, { object: 'this one', fault: message.fault })}</section>`,
    })
  })

  addQuarantineActions(app)
}

function addQuarantineActions(app: FastifyInstance): void {
  const common = { power: 'administration', page: '/admin/quarantine' } as const

  const received = { flash: 'messages_replayed', unchanged: 'messages_unchanged' } as const
  add('replay', { ...received, title: 'Replay rejected messages' }, replayQuarantine)
  add('release', { ...received, title: 'Release rejected messages' }, releaseQuarantine)
  const drop = {
    title: 'Delete rejected messages',
    flash: 'messages_dropped',
    unchanged: 'nothing_deleted',
    label: (_request: FastifyRequest, preview: Readonly<Record<string, unknown>>) => String(preview['messages']),
    effect: () => html`<p>Deletes rejected messages. They cannot be replayed afterwards.</p>`,
  } as const
  add('drop', drop, dropQuarantine)

  function add(
    name: string,
    {
      unchanged,
      ...action
    }: Pick<FormAction, 'title' | 'flash' | 'label' | 'effect'> & { readonly unchanged: FormAction['flash'] },
    change: typeof dropQuarantine,
  ): void {
    addFormAction(app, {
      ...common,
      ...action,
      path: `/admin/quarantine/${name}`,
      run: async (request, confirm) => {
        const chosen = { ...readFilter(request), confirm, reason: formText(request, 'reason') }
        const { count, task } = await change(request.services, request.console.actor, chosen)
        return count === 0 ? new ShowPage(common.page, unchanged) : showAfterChange(common.page, task)
      },
    })
  }
}

const WORDS: Readonly<Record<string, string>> = { 'quarantine.drop': 'Deletion', 'quarantine.release': 'Release' }

function wordsOfTask({ kind, reason }: BackgroundTask): Markup {
  return html`${WORDS[kind] ?? 'Replay'}: <bdi>${reason}</bdi>`
}

function filterOf({ id, fault, host }: Selection): QuarantineFilter {
  return { ...(id !== undefined && { ids: [idIn(id)] }), fault, host }
}

function idIn(text: string): number {
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new RequestFault(404, 'There is no rejected message with this number.')
  return Number(text)
}

/** At least one field has to be given: nothing changes all messages by mistake. */
function readFilter(request: FastifyRequest): QuarantineFilter {
  const selection = { id: formText(request, 'id'), fault: formText(request, 'fault'), host: formText(request, 'host') }
  if (Object.values(selection).every((part) => part === undefined)) {
    throw new RequestFault(422, 'Choose rejected messages by number, fault or host.')
  }
  return filterOf(selection)
}

function listOf(messages: readonly QuarantinedMessage[]): Markup {
  return dataTable({
    caption: 'The latest rejected messages',
    columns: [
      { title: 'Message' },
      { title: 'Received' },
      { title: 'Channel' },
      { title: 'Claimed author or network', kind: 'wide' },
      { title: 'Fault' },
      { title: 'Times', kind: 'number' },
      { title: 'State' },
    ],
    rows: messages.map(({ id, receivedAt, recipientGuid, author, source, fault, times, state, result }) => [
      html`<a href="/admin/quarantine/${id}">${id}</a>`,
      formatTime(receivedAt),
      recipientGuid === null ? 'public' : 'private',
      html`<bdi>${author ?? source ?? '–'}</bdi>`,
      fault,
      formatCount(times),
      stateBadge(result ?? state, result === 'stored' ? 'good' : 'neutral'),
    ]),
  })
}

function factsOf(message: QuarantinedMessage): Markup {
  return detailList([
    ['Fault', message.fault],
    ['Reason', html`<bdi>${message.detail ?? 'not stored for private messages'}</bdi>`],
    ['Channel', message.recipientGuid === null ? 'public' : html`private, for <bdi>${message.recipientGuid}</bdi>`],
    ['Claimed author', html`<bdi>${message.author ?? '–'}</bdi>`],
    ['Network', html`<bdi>${message.source ?? '–'}</bdi>`],
    ['Entity', html`<bdi>${message.entity ?? '–'} ${message.guid ?? ''}</bdi>`],
    ['Size', html`${formatBytes(message.bytes)}${message.isWhole ? '' : ', only the beginning is stored'}`],
    ['Digest', message.digest],
    ['Request', traceLink(message.trace)],
    ['Received', formatTime(message.receivedAt)],
    ['Rejected', html`${formatCount(message.times)} times, last ${formatTime(message.lastAt)}`],
    ['State', message.state],
    ['Result of the replay', message.result ?? '–'],
  ])
}

interface ActionsContent {
  /** The messages, as the buttons name them. */
  readonly object: string
  /** Undefined: they have several. */
  readonly fault: string | undefined
}

function actionsFor(request: FastifyRequest, selection: Selection, { object, fault }: ActionsContent): Markup {
  const fields = Object.entries(selection).map(([name, value]) => hiddenField(name, value))
  const form = (action: string, button: Markup) =>
    actionForm(request, `/admin/quarantine/${action}`, html`${fields}${reasonField()}${button}`)
  return html`<div class="choices"><div><h2>Replay</h2>${form('replay', html`<button>Replay ${object}</button>`)}</div>
${
  (fault === undefined || isReleasable(fault)) &&
  html`<div><h2>Release</h2><p>Only messages rejected by a filter.</p>${form('release', html`<button class="quiet">Release ${object}</button>`)}</div>\n`
}<div><h2>Delete</h2>${form('drop', html`<button class="danger">Delete ${object}…</button>`)}</div></div>`
}
