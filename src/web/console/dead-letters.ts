import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import {
  type DeadLetterView,
  formatDeadLetterView,
  readDeadLetterDetails,
  readDeadLetterPayload,
} from '../../domain/operations/dead-letter-view.js'
import {
  dropAudited,
  labelOfFilter,
  listDeadLetterPage,
  listDeadLetterTasks,
  replayAudited,
} from '../../domain/operations/dead-letters.js'
import { Refusal } from '../../domain/refusals.js'
import { countDeadLetters, type DeadLetterCount } from '../../jobs/dead-letters/count-dead-letters.js'
import type { DeadLetter, DeadLetterFilter, DeadLetterPosition } from '../../jobs/dead-letters/dead-letter.js'
import { isQueueName, QUEUES } from '../../jobs/queues/queue-names.js'
import { formText } from '../forms/form-text.js'
import { html, type Markup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { RequestFault } from '../server/request-faults.js'
import { isConfirmed, sendConfirmationPage } from './confirmation.js'
import { sendConsolePage } from './console-page.js'
import { explainFault } from './explain-fault.js'
import { actionForm, filterForm, hiddenField, reasonField, select, textField } from './form-parts.js'
import { formatBytes, formatCount, formatTime } from './quantities.js'
import { dataTable, detailList } from './tables.js'
import { operationProgress } from './task-progress.js'
import { traceLink } from './traces.js'

const SHOWN = 50
/** The tables of faults and pods count the latest, so that the page is quick with any number of dead letters. */
const COUNTED = { groups: 20, latest: 2_000 } as const

interface Selection {
  readonly id?: string | undefined
  readonly queue?: string | undefined
  readonly fault?: string | undefined
  readonly pod?: string | undefined
}

/** `/admin/dead-letters`: work that was given up. Lists show no payload. */
export const deadLetterRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'administration' } as const
  const schema = { hide: true }

  app.get('/admin/dead-letters', { config, schema }, async (request, reply) => {
    const selection = {
      queue: queryText(request, 'queue'),
      fault: queryText(request, 'fault'),
      pod: queryText(request, 'pod'),
    }
    const filter = filterOf(selection)
    const before = positionIn(queryText(request, 'before'))
    const [{ items: letters, hasOlder }, byFault, byPod, operations] = await Promise.all([
      listDeadLetterPage(request.services, request.console.actor, filter, { before, limit: SHOWN }),
      countDeadLetters(request.services, filter, 'fault', COUNTED),
      countDeadLetters(request.services, filter, 'pod', COUNTED),
      listDeadLetterTasks(request.services, request.console.actor),
    ])
    const number = hasOlder ? `more than ${SHOWN}` : formatCount(letters.length)
    const isFiltered = Object.keys(filter).length > 0
    const queues = [['', 'all'], ...QUEUES.map((name) => [name, name] as const)] as const
    const filterFields = html`${[
      select('Queue', 'queue', queues, selection.queue),
      textField('Fault', 'fault', selection.fault),
      textField('Pod', 'pod', selection.pod),
    ]}`
    return sendConsolePage(request, reply, {
      title: `Dead letters: ${letters.length === 0 ? 'none' : number}`,
      content: html`${operationProgress(operations, wordsOfTask)}<section class="card">
<p>Jobs and deliveries that were given up. Replay them after fixing the cause.</p>
${filterForm('/admin/dead-letters', filterFields)}
${letters.length === 0 ? html`<p>No dead letters match.</p>` : listOf(letters)}${hasOlder && olderLink(selection, letters.at(-1))}
${letters.length > 0 && isFiltered && actionsFor(request, selection, 'all that match')}</section>
${groupTable('The latest dead letters by fault', 'fault', byFault)}${groupTable('The latest dead letters by pod', 'pod', byPod)}`,
    })
  })

  app.get('/admin/dead-letters/:id', { config, schema }, async (request, reply) => {
    const { id } = request.params as { readonly id: string } // part of the route
    const deadLetter = await orNotFound(readDeadLetterDetails(request.services, request.console.actor, id))
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
    const view = await orNotFound(readDeadLetterPayload(request.services, request.console.actor, id))
    return sendConsolePage(request, reply, {
      title: `Content of dead letter ${id}`,
      content: html`<section class="card">${view.entityXml === null && html`<p>Private content is not shown.</p>`}
<pre>${formatDeadLetterView(view)}</pre>
<p><a href="/admin/dead-letters/${encodeURIComponent(id)}">Back to the dead letter</a></p></section>`,
    })
  })

  app.post('/admin/dead-letters/replay', { config, schema }, async (request, reply) => {
    const filter = chosen(request)
    const reason = formText(request, 'reason')
    const { operation: task } = await replayAudited(request.services, request.console.actor, { filter, reason })
    return reply.redirect(`/admin/dead-letters?flash=${task === undefined ? 'replayed' : 'work_started'}`, 303)
  })

  app.post('/admin/dead-letters/drop', { config, schema }, async (request, reply) => {
    const filter = chosen(request)
    const label = labelOfFilter(filter)
    if (!isConfirmed(request, label)) {
      const preview = html`<p>Deletes ${filter.ids === undefined ? 'all dead letters of' : 'the dead letter'} <b><bdi>${label}</bdi></b>. They cannot be replayed afterwards.</p>`
      return sendConfirmationPage(request, reply, { title: 'Delete dead letters', label, preview })
    }
    const change = { filter, reason: formText(request, 'reason') }
    const { operation: task } = await dropAudited(request.services, request.console.actor, change)
    return reply.redirect(`/admin/dead-letters?flash=${task === undefined ? 'dropped' : 'work_started'}`, 303)
  })

  function selectionIn(request: FastifyRequest): Selection {
    return {
      id: formText(request, 'id'),
      queue: formText(request, 'queue'),
      fault: formText(request, 'fault'),
      pod: formText(request, 'pod'),
    }
  }

  /** At least one field has to be given: nothing changes all dead letters by mistake. */
  function chosen(request: FastifyRequest): DeadLetterFilter {
    const filter = filterOf(selectionIn(request))
    if (Object.keys(filter).length === 0) throw new RequestFault(422, 'Choose dead letters by id, queue, fault or pod.')
    return filter
  }

  function filterOf({ id, queue, fault, pod: host }: Selection): DeadLetterFilter {
    return {
      ...(id !== undefined && { ids: [id] }),
      ...(queue !== undefined && isQueueName(queue) && { queue }),
      ...(fault !== undefined && { fault }),
      ...(host !== undefined && { pod: host.toLowerCase() }),
    }
  }
}

function wordsOfTask({ kind, reason }: BackgroundTask): Markup {
  return html`${kind === 'dead_letters.drop' ? 'Deletion' : 'Replay'}: <bdi>${reason}</bdi>`
}

async function orNotFound<Found>(found: Promise<Found>): Promise<Found> {
  return found.catch((error) => {
    throw error instanceof Refusal ? new RequestFault(404, error.message) : error
  })
}

/** The position in the link to older dead letters. */
function positionIn(text: string | undefined): DeadLetterPosition | undefined {
  const [, ms, id] = /^([0-9]{1,15})\.(.{1,100})$/.exec(text ?? '') ?? []
  return id === undefined ? undefined : { failedAt: new Date(Number(ms)), id }
}

function olderLink({ queue, fault, pod }: Selection, last: DeadLetter | undefined): Markup | '' {
  if (last === undefined) return ''
  const query = new URLSearchParams({
    ...(queue !== undefined && { queue }),
    ...(fault !== undefined && { fault }),
    ...(pod !== undefined && { pod }),
    before: `${last.failedAt.getTime()}.${last.id}`,
  })
  return html`<nav class="pages" aria-label="Pages of the list"><a rel="next" href="/admin/dead-letters?${query.toString()}">Older dead letters</a></nav>`
}

function listOf(letters: readonly DeadLetter[]): Markup {
  return dataTable({
    caption: 'The latest dead letters',
    columns: [
      { title: 'Dead letter' },
      { title: 'Queue' },
      { title: 'Job' },
      { title: 'Fault' },
      { title: 'Attempts', kind: 'number' },
      { title: 'Given up' },
    ],
    rows: letters.map(({ id, queue, name, fault, attempts, failedAt }) => [
      html`<a href="/admin/dead-letters/${encodeURIComponent(id)}">${id}</a>`,
      queue,
      name,
      fault ?? 'unknown',
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

function actionsFor(request: FastifyRequest, selection: Selection, which: string): Markup {
  const fields = Object.entries(selection).map(([name, value]) => hiddenField(name, value))
  const form = (action: string, button: Markup) =>
    actionForm(request, `/admin/dead-letters/${action}`, html`${fields}${reasonField()}${button}`)
  return html`<div class="choices"><div><h2>Replay</h2>${form('replay', html`<button>Replay ${which}</button>`)}</div>
<div><h2>Delete</h2>${form('drop', html`<button class="danger">Delete ${which}…</button>`)}</div></div>`
}

function groupTable(caption: string, name: 'fault' | 'pod', groups: readonly DeadLetterCount[]): Markup | '' {
  if (groups.length === 0) return ''
  return html`<section class="card">${dataTable({
    caption,
    columns: [{ title: name === 'fault' ? 'Fault' : 'Pod' }, { title: 'Dead letters', kind: 'number' }],
    rows: groups.map(({ value, count: number }) => [
      value === null
        ? 'unknown'
        : html`<a href="/admin/dead-letters?${name}=${encodeURIComponent(value)}"><bdi>${value}</bdi></a>`,
      formatCount(number),
    ]),
  })}</section>\n`
}
