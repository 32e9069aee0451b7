import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import {
  type DeadLetterView,
  formatDeadLetterView,
  readDeadLetterDetails,
  readDeadLetterPayload,
} from '../../domain/operations/dead-letter-view.js'
import {
  dropConfirmed,
  labelOfFilter,
  listDeadLetterPage,
  listDeadLetterTasks,
  replayAudited,
} from '../../domain/operations/dead-letters.js'
import { Refusal } from '../../domain/refusals.js'
import { countDeadLettersByEach, type DeadLetterCount } from '../../jobs/dead-letters/count-dead-letters.js'
import type { DeadLetter, DeadLetterFilter, DeadLetterPosition } from '../../jobs/dead-letters/dead-letter.js'
import { DEAD_LETTER_GROUPS, type DeadLetterGroup } from '../../jobs/dead-letters/dead-letter-rows.js'
import { isQueueName, QUEUES } from '../../jobs/queues/queue-names.js'
import { formText } from '../forms/form-text.js'
import { html, type Markup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { readTime } from '../schemas/times.js'
import { RequestFault } from '../server/request-faults.js'
import { addFormAction, showAfterChange } from './actions.js'
import { sendConsolePage } from './console-page.js'
import { explainFault } from './explain-fault.js'
import { actionForm, filterForm, hiddenField, moreText, reasonField, select, textField } from './form-parts.js'
import { formatBytes, formatCount, formatTime } from './quantities.js'
import { dataTable, detailList } from './tables.js'
import { operationProgress } from './task-progress.js'
import { traceLink } from './traces.js'

const SHOWN = 50
/** The tables of faults and pods count the latest, so that the page is quick with any number of dead letters. */
const COUNTED = { groups: 20, latest: 1_000 } as const

const FILTER_FIELDS = ['queue', 'fault', 'pod', 'entity', 'since', 'until'] as const

/** Texts of the form or of the address; those that are not set are missing. */
type Selection = Readonly<Partial<Record<'id' | (typeof FILTER_FIELDS)[number], string>>>

/** `/admin/dead-letters`: work that was given up. Lists show no payload. */
export const deadLetterRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'administration' } as const
  const schema = { hide: true }

  app.get('/admin/dead-letters', { config, schema }, async (request, reply) => {
    const selection = selectionOf(FILTER_FIELDS, (name) => queryText(request, name)?.trim())
    const filter = filterOf(selection)
    const before = positionIn(queryText(request, 'before'))
    const groupBy = DEAD_LETTER_GROUPS.find((each) => each === queryText(request, 'group_by'))
    const groupings = groupBy === undefined ? (['fault', 'pod'] as const) : [groupBy]
    const [{ items: deadLetters, hasOlder }, counts, operations] = await Promise.all([
      listDeadLetterPage(request.services, request.console.actor, filter, { before, limit: SHOWN }),
      countDeadLettersByEach(request.services, filter, groupings, COUNTED),
      listDeadLetterTasks(request.services, request.console.actor),
    ])
    const number = hasOlder ? `more than ${SHOWN}` : formatCount(deadLetters.length)
    const isFiltered = Object.keys(filter).length > 0
    return sendConsolePage(request, reply, {
      title: `Dead letters: ${deadLetters.length === 0 ? 'none' : number}`,
      content: html`${operationProgress(operations, wordsOfTask)}<section class="card">
<p>Jobs and deliveries that were given up. Replay them after fixing the cause.</p>
${filterForm('/admin/dead-letters', filterFields(selection), moreFilters(selection, groupBy))}
${deadLetters.length === 0 ? html`<p>No dead letters match.</p>` : listOf(deadLetters)}${hasOlder && olderLink(selection, deadLetters.at(-1))}
${deadLetters.length > 0 && isFiltered && actionsFor(request, selection, 'all that match')}</section>
${groupings.map((by) => groupTable(by, counts.get(by)))}`,
    })
  })

  app.get('/admin/dead-letters/:id', { config, schema }, async (request, reply) => {
    const { id } = request.params as { readonly id: string } // part of the route
    const deadLetter = await replaceRefusalByNotFound(
      readDeadLetterDetails(request.services, request.console.actor, id),
    )
    return sendConsolePage(request, reply, {
      title: `Dead letter ${id}`,
      content: html`<section class="card">${factsOf(deadLetter)}
${deadLetter.bytes !== null && html`<p><a href="/admin/dead-letters/${encodeURIComponent(id)}/payload">Show the content</a>: the audit log records it.</p>`}
${deadLetter.stack !== null && html`<h2>Error</h2><pre>${deadLetter.stack}</pre>`}
${actionsFor(request, { id }, 'this one')}</section>`,
    })
  })

  app.get('/admin/dead-letters/:id/payload', { config, schema }, async (request, reply) => {
    const { id } = request.params as { readonly id: string } // part of the route
    const view = await replaceRefusalByNotFound(readDeadLetterPayload(request.services, request.console.actor, id))
    return sendConsolePage(request, reply, {
      title: `Content of dead letter ${id}`,
      content: html`<section class="card">${view.entityXml === null && html`<p>Private content is not shown.</p>`}
<pre>${formatDeadLetterView(view)}</pre>
<p><a href="/admin/dead-letters/${encodeURIComponent(id)}">Back to the dead letter</a></p></section>`,
    })
  })

  addDeadLetterActions(app)
}

function addDeadLetterActions(app: FastifyInstance): void {
  const common = { power: 'administration', page: '/admin/dead-letters' } as const

  addFormAction(app, {
    ...common,
    path: '/admin/dead-letters/replay',
    title: 'Replay dead letters',
    flash: 'replayed',
    run: async (request) => {
      const change = { filter: readFilter(request), reason: formText(request, 'reason') }
      const { task } = await replayAudited(request.services, request.console.actor, change)
      return showAfterChange(common.page, task)
    },
  })
  addFormAction(app, {
    ...common,
    path: '/admin/dead-letters/drop',
    title: 'Delete dead letters',
    flash: 'dropped',
    label: (_request, preview) => String(preview['dead_letters']),
    effect: (request) =>
      html`<p>Deletes the dead letters that match <b><bdi>${labelOfFilter(readFilter(request))}</bdi></b>. They cannot be replayed afterwards.</p>`,
    run: async (request, confirm) => {
      const change = { filter: readFilter(request), confirm, reason: formText(request, 'reason') }
      const { task } = await dropConfirmed(request.services, request.console.actor, change)
      return showAfterChange(common.page, task)
    },
  })
}

function selectionOf(
  names: readonly (keyof Selection)[],
  textOf: (name: keyof Selection) => string | undefined,
): Selection {
  return Object.fromEntries(names.flatMap((name) => (textOf(name) ? [[name, textOf(name)]] : [])))
}

/** At least one field has to be given: nothing changes all dead letters by mistake. */
function readFilter(request: FastifyRequest): DeadLetterFilter {
  const filter = filterOf(selectionOf(['id', ...FILTER_FIELDS], (name) => formText(request, name)))
  if (Object.keys(filter).length === 0)
    throw new RequestFault(422, 'Choose dead letters by id, queue, fault, pod, entity or time.')
  return filter
}

function filterOf({ id, queue, fault, pod: host, entity, since, until }: Selection): DeadLetterFilter {
  // Without this, an unknown queue would choose the dead letters of all queues.
  if (queue !== undefined && !isQueueName(queue)) throw new RequestFault(422, 'There is no queue with this name.')
  return {
    ...(id !== undefined && { ids: [id] }),
    ...(queue !== undefined && { queue }),
    ...(fault !== undefined && { fault }),
    ...(host !== undefined && { pod: host.toLowerCase() }),
    ...(entity !== undefined && { entity }),
    ...(since !== undefined && { since: readTime('since', since) }),
    ...(until !== undefined && { until: readTime('until', until) }),
  }
}

function filterFields({ queue, fault, pod }: Selection): readonly Markup[] {
  const queues = [['', 'all'], ...QUEUES.map((name) => [name, name] as const)] as const
  return [select('Queue', 'queue', queues, queue), textField('Fault', 'fault', fault), textField('Pod', 'pod', pod)]
}

function moreFilters({ entity, since, until }: Selection, groupBy: DeadLetterGroup | undefined) {
  const groups = [['', 'fault and pod'], ...DEAD_LETTER_GROUPS.map((name) => [name, name] as const)] as const
  return [
    moreText('Entity', 'entity', entity),
    timeText('Given up from', 'since', since),
    timeText('Given up before', 'until', until),
    { value: groupBy, field: select('Count by', 'group_by', groups, groupBy) },
  ]
}

/** A day, or a time of a link to one hour: browsers blank it in a date input. */
function timeText(label: string, name: string, value: string | undefined) {
  return moreText(label, name, value, /^\d{4}-\d\d-\d\d$|^$/.test(value ?? '') ? { type: 'date' } : {})
}

function wordsOfTask({ kind, reason }: BackgroundTask): Markup {
  return html`${kind === 'dead_letters.drop' ? 'Deletion' : 'Replay'}: <bdi>${reason}</bdi>`
}

async function replaceRefusalByNotFound<Found>(found: Promise<Found>): Promise<Found> {
  return found.catch((error) => {
    throw error instanceof Refusal ? new RequestFault(404, error.message) : error
  })
}

/** The position in the link to older dead letters. */
function positionIn(text: string | undefined): DeadLetterPosition | undefined {
  const [, ms, id] = /^([0-9]{1,15})\.(.{1,100})$/.exec(text ?? '') ?? []
  return id === undefined ? undefined : { failedAt: new Date(Number(ms)), id }
}

function olderLink(selection: Selection, last: DeadLetter | undefined): Markup | '' {
  if (last === undefined) return ''
  const query = new URLSearchParams({ ...selection, before: `${last.failedAt.getTime()}.${last.id}` })
  return html`<nav class="pages" aria-label="Pages of the list"><a rel="next" href="/admin/dead-letters?${query.toString()}">Older dead letters</a></nav>`
}

function listOf(deadLetters: readonly DeadLetter[]): Markup {
  return dataTable({
    caption: 'The latest dead letters',
    columns: [
      { title: 'Dead letter' },
      { title: 'Queue' },
      { title: 'Job' },
      { title: 'Fault' },
      { title: 'Pod', kind: 'wide' },
      { title: 'Entity' },
      { title: 'Attempts', kind: 'number' },
      { title: 'Given up' },
    ],
    rows: deadLetters.map(({ id, queue, name, fault, pod, entity, attempts, failedAt }) => [
      html`<a href="/admin/dead-letters/${encodeURIComponent(id)}">${id}</a>`,
      queue,
      name,
      fault ?? 'unknown',
      html`<bdi>${pod ?? '–'}</bdi>`,
      html`<bdi>${entity ?? '–'}</bdi>`,
      attempts === null ? '–' : formatCount(attempts),
      formatTime(failedAt),
    ]),
  })
}

/** Returns the facts of a dead letter without its payload; for deliveries also the target, which is not secret. */
function factsOf({
  queue,
  name,
  fault,
  attempts,
  createdAt,
  failedAt,
  data,
  id,
  bytes: size,
  digest,
  recipientGuid,
  trace,
}: DeadLetterView): Markup {
  const target = id.startsWith('delivery-') && typeof data === 'object' && data !== null ? Object.entries(data) : []
  return detailList([
    ['Queue', queue],
    ['Job', name],
    ['Fault', fault ?? 'unknown'],
    ['Meaning', explainFault(fault)],
    ['Attempts', attempts === null ? 'unknown' : formatCount(attempts)],
    ['Created', formatTime(createdAt)],
    ['Given up', formatTime(failedAt)],
    ['Request', traceLink(trace)],
    ...(size === null ? [] : [['Size', formatBytes(size)] as const, ['Digest', digest ?? '–'] as const]),
    ...(recipientGuid === null ? [] : [['Recipient', html`<bdi>${recipientGuid}</bdi>`] as const]),
    ...target.flatMap(([key, value]) =>
      value === null ? [] : [[key[0]?.toUpperCase() + key.slice(1), html`<bdi>${String(value)}</bdi>`] as const],
    ),
  ])
}

function actionsFor(request: FastifyRequest, selection: Selection, object: string): Markup {
  const fields = Object.entries(selection).map(([name, value]) => hiddenField(name, value))
  const form = (action: string, button: Markup) =>
    actionForm(request, `/admin/dead-letters/${action}`, html`${fields}${reasonField()}${button}`)
  return html`<div class="choices"><div><h2>Replay</h2>${form('replay', html`<button>Replay ${object}</button>`)}</div>
<div><h2>Delete</h2>${form('drop', html`<button class="danger">Delete ${object}…</button>`)}</div></div>`
}

function groupTable(by: DeadLetterGroup, groups: readonly DeadLetterCount[] = []): Markup | '' {
  if (groups.length === 0) return ''
  return html`<section class="card">${dataTable({
    caption: `The latest dead letters by ${by}`,
    columns: [{ title: `${by.slice(0, 1).toUpperCase()}${by.slice(1)}` }, { title: 'Dead letters', kind: 'number' }],
    rows: groups.map(({ value, count: number }) => [
      value === null
        ? 'unknown'
        : html`<a href="/admin/dead-letters?${queryOfGroup(by, value)}"><bdi>${value}</bdi></a>`,
      formatCount(number),
    ]),
  })}</section>\n`
}

/** The filter that lists the dead letters of a group. */
function queryOfGroup(by: DeadLetterGroup, value: string): string {
  if (by !== 'hour') return new URLSearchParams({ [by]: value }).toString()
  const until = new Date(new Date(value).getTime() + 3_600_000).toISOString()
  return new URLSearchParams({ since: value, until }).toString()
}
