import type { FastifyRequest } from 'fastify'
import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import type { ListedJobs, QueueOverview } from '../../domain/operations/queues.js'
import type { PerMinute } from '../../jobs/operations/queue-rates.js'
import { JOB_STATES, type JobState } from '../../jobs/queues/inspect-queues.js'
import { jobCursors } from '../api/job-paging.js'
import { html, type Markup } from '../pages/markup.js'
import type { ConsolePage } from './console-page.js'
import { actionForm, filterForm, reasonField, select, textField } from './form-parts.js'
import { cursorNavigation } from './pager.js'
import { formatBytes, formatCount, formatMilliseconds, formatRate, formatSeconds, formatTime } from './quantities.js'
import { dataTable, detailList, listCard, stateBadge } from './tables.js'
import { operationProgress } from './task-progress.js'
import { traceLink } from './traces.js'

const PAUSES = [
  ['', 'until resumed'],
  ['1', '1 hour'],
  ['8', '8 hours'],
  ['24', '1 day'],
] as const

/** The accepted messages that are not stored yet, of both inbound queues together. */
export interface InboundSpace {
  readonly usedBytes: number
  readonly maxBytes: number
  /** Seconds until no message is accepted, at the rate of the last 15 minutes; null: none was received. */
  readonly fullAfterSeconds: number | null
}

export interface QueuePageContent {
  readonly queue: QueueOverview
  /** The latest work on the jobs of the queue, unless it is done. */
  readonly discarding: BackgroundTask | undefined
  /** Undefined: not an inbound queue. */
  readonly space: InboundSpace | undefined
  readonly jobs: ListedJobs & { readonly state: JobState }
}

/** `/admin/queues/:name`: a queue with its jobs, and what an admin can do about it. */
export function queuePage(request: FastifyRequest, { queue, discarding, space, jobs }: QueuePageContent): ConsolePage {
  return {
    title: `Queue ${queue.name}: ${queue.state}`,
    content: html`${discarding && progressOf(discarding)}<section class="card">${queueDetails(queue)}${space && spaceOf(space, queue)}</section>
<section class="card"><h2>Speed</h2>${rateTable(queue)}</section>
<section class="card"><h2>Jobs</h2>${jobTable(queue, jobs)}</section>
${actionsOf(request, queue)}`,
  }
}

export function queueState({ state }: QueueOverview): Markup {
  return stateBadge(state, state === 'running' ? 'good' : 'warn')
}

function progressOf(discarding: BackgroundTask): Markup {
  const words = ({ reason }: BackgroundTask) => html`Discarding of jobs: <bdi>${reason}</bdi>`
  return html`${operationProgress([discarding], words)}`
}

/** Changes with each request of an operator. */
export function versionOfQueue({ requested }: QueueOverview): string {
  return requested === undefined ? 'running' : `${requested.state} ${requested.changedAt.toISOString()}`
}

export function queueDetails(queue: QueueOverview): Markup {
  const { requested } = queue
  return detailList([
    ['State', queueState(queue)],
    ...(requested === undefined
      ? []
      : ([
          ['Since', html`${formatTime(requested.changedAt)}, by <bdi>${requested.actor}</bdi>`],
          ['Reason', html`<bdi>${requested.reason}</bdi>`],
          ['Until', requested.until === null ? 'resumed' : formatTime(requested.until)],
        ] as const)),
    ['Waiting', formatCount(queue.waiting)],
    ['Oldest', formatSeconds(queue.oldestSeconds)],
    ['Running', formatCount(queue.active)],
    ['Delayed', formatCount(queue.delayed)],
    [
      'Failed',
      html`<a href="/admin/queues/${queue.name}?state=failed">${formatCount(queue.failed)}</a>, see also <a href="/admin/dead-letters?queue=${queue.name}">dead letters</a>`,
    ],
    ['Workers', formatCount(queue.workers)],
  ])
}

/** A stopped queue fills up: from the limit on, other pods get 503. */
function spaceOf({ usedBytes, maxBytes, fullAfterSeconds }: InboundSpace, { state }: QueueOverview): Markup {
  if (usedBytes >= maxBytes) {
    return html`<p class="alert" role="alert">Accepted messages take ${formatBytes(usedBytes)}, and INBOUND_BYTES is ${formatBytes(maxBytes)}: other pods get 503 and send their messages again later.</p>`
  }
  const forecast =
    state === 'paused' &&
    fullAfterSeconds !== null &&
    html` At the rate of the last 15 minutes this space is used up in ${formatSeconds(fullAfterSeconds)}; other pods then get 503.`
  return html`<p>Accepted messages take ${formatBytes(usedBytes)} of ${formatBytes(maxBytes)} (INBOUND_BYTES).${forecast}</p>`
}

function rateTable({ perMinute, wait, run }: QueueOverview): Markup {
  const row = (name: string, { minute, quarter, hour }: PerMinute) => [name, ...[minute, quarter, hour].map(formatRate)]
  const times = ({ p50, p95 }: QueueOverview['wait']) =>
    `half within ${formatMilliseconds(p50)}, 95 % within ${formatMilliseconds(p95)}`
  return html`${dataTable({
    caption: 'Runs of jobs a minute, by how they ended',
    columns: [
      { title: 'End' },
      ...['Last minute', 'Last 15 min', 'Last hour'].map((title) => ({ title, kind: 'number' as const })),
    ],
    rows: [
      row('done', perMinute.byEnd.done),
      row('failed', perMinute.byEnd.failed),
      row('put back for a newer version', perMinute.byEnd.put_back),
      row('all', perMinute),
    ],
  })}${detailList([
    ['Wait in the last hour', times(wait)],
    ['Run in the last hour', times(run)],
  ])}`
}

const STATES = JOB_STATES.map((state) => [state, state === 'active' ? 'running' : state] as const)

function jobTable({ name }: QueueOverview, { state, ...jobs }: QueuePageContent['jobs']): Markup {
  const isFailed = state === 'failed'
  const path = `/admin/queues/${name}`
  const table = {
    caption: 'Jobs without their data',
    columns: [
      { title: 'Job' },
      { title: 'Name' },
      { title: 'Added' },
      { title: 'Attempts', kind: 'number' as const },
      { title: 'Last fault' },
      ...(isFailed ? [{ title: 'Pod' }, { title: 'Request' }] : []),
    ],
    rows: jobs.items.map(({ id, name: job, addedAt, attempts, fault, origin }) => [
      html`<bdi>${id}</bdi>`,
      html`<bdi>${job}</bdi>`,
      formatTime(new Date(addedAt)),
      formatCount(attempts),
      fault === null ? '–' : html`<bdi>${fault}</bdi>`,
      ...(isFailed ? [html`<bdi>${origin.pod ?? '–'}</bdi>`, traceLink(origin.trace)] : []),
    ]),
  }
  return html`${filterForm(path, select('State', 'state', STATES, state))}${listCard(table, {
    empty: 'There are no such jobs.',
    pages: cursorNavigation(path, { state }, jobCursors(jobs)),
  })}`
}

function actionsOf(request: FastifyRequest, queue: QueueOverview): Markup {
  const { name, state, waiting, delayed } = queue
  const form = (action: string, fields: Markup) =>
    actionForm(request, `/admin/queues/${name}/${action}`, fields, { version: versionOfQueue(queue) })
  return html`${
    delayed > 0 &&
    html`<section class="card"><h2>Delayed jobs</h2><p>Makes up to 1 000 jobs due now: all, or those with a name or of a pod.</p>
${form(
  'promote',
  html`${textField('Name (optional)', 'name')}${textField('Pod (optional)', 'pod')}${reasonField()}<button class="quiet">Run delayed jobs now</button>`,
)}</section>\n`
  }${
    name !== 'maintenance' &&
    waiting + delayed > 0 &&
    html`<section class="card"><h2>Discard</h2><p>Deletes waiting jobs.</p>
${form('discard', html`${reasonField()}<button class="danger">Discard the jobs of ${name}…</button>`)}</section>\n`
  }${
    name === 'maintenance'
      ? html`<section class="card"><p>This queue cannot be stopped: it finds lost work again.</p></section>`
      : state === 'running'
        ? html`<section class="card"><h2>Pause</h2><p>Running jobs finish, and no other job starts. New jobs are accepted and wait.</p>
${form('pause', html`${reasonField()}${select('For', 'hours', PAUSES, '')}<button class="quiet">Pause ${name}</button>`)}</section>
<section class="card"><h2>Drain</h2><p>The queue accepts no new jobs, and the workers finish the existing ones.</p>
${form('drain', html`${reasonField()}<button class="danger">Drain ${name}</button>`)}</section>`
        : html`<section class="card"><h2>Resume</h2>
${form('resume', html`${reasonField()}<button>Resume ${name}</button>`)}</section>`
  }`
}
