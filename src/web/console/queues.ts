import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { cacheResult } from '../../concurrency/cache-result.js'
import type { BackgroundTask } from '../../domain/operations/background-tasks.js'
import {
  discardJobs,
  drainQueue,
  findDiscarding,
  findQueue,
  listQueues,
  pauseQueue,
  promoteJobs,
  type QueueChange,
  type QueueOverview,
  resumeQueue,
} from '../../domain/operations/queues.js'
import { activityHistory } from '../../jobs/operations/activity-history.js'
import { isQueueName, type QueueName } from '../../jobs/queues/queue-names.js'
import { formText } from '../forms/form-text.js'
import { html, type Markup } from '../pages/markup.js'
import { RequestFault } from '../server/request-faults.js'
import { lineChart } from './charts.js'
import { isConfirmed, sendConfirmationPage } from './confirmation.js'
import { sendConsolePage } from './console-page.js'
import { actionForm, reasonField, select } from './form-parts.js'
import { formatCount, formatMilliseconds, formatRate, formatSeconds, formatTime } from './quantities.js'
import { dataTable, detailList, stateBadge } from './tables.js'
import { operationProgress, workFailed } from './task-progress.js'

const HISTORY_FRESH_MS = 60_000

const PAUSES = [
  ['', 'until resumed'],
  ['1', '1 hour'],
  ['8', '8 hours'],
  ['24', '1 day'],
] as const

/** `/admin/queues`: waiting jobs, their speed, and the actions of an operator. */
export const queueRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { power: 'administration' } as const
  const schema = { hide: true }
  const history = cacheResult(() => activityHistory(services), HISTORY_FRESH_MS)

  app.get('/admin/queues', { config, schema }, async (request, reply) => {
    const [queues, past] = await Promise.all([listQueues(request.services), history()])
    const waitingJobs = queues?.reduce((sum, queue) => sum + queue.waiting, 0)
    const title = waitingJobs === undefined ? 'Queues: unavailable' : `Queues: ${formatCount(waitingJobs)} waiting`
    return sendConsolePage(request, reply, {
      title,
      content: html`<section class="card"><p class="soft small">As of ${formatTime(services.now())}. <a href="/admin/queues">Refresh</a></p>
${queues === undefined ? html`<p class="alert" role="alert">The queue is unavailable.</p>` : queueTable(queues)}</section>
<section class="charts" aria-label="The last 24 hours">
${lineChart({
  title: 'Messages from other pods',
  unit: 'a minute',
  times: past.times,
  series: [
    { name: 'Received', values: past.received },
    { name: 'Stored', values: past.stored },
  ],
})}
${lineChart({
  title: 'Delivery attempts',
  unit: 'a minute',
  times: past.times,
  series: [
    { name: 'Delivered', values: past.delivered },
    { name: 'Failed', values: past.failedDeliveries },
  ],
})}
${lineChart({ title: 'Waiting jobs', unit: 'jobs', times: past.times, series: [{ name: 'All queues', values: past.waiting }] })}
${lineChart({
  title: 'Wait of received messages',
  unit: 'seconds',
  times: past.times,
  series: [{ name: '95th percentile', values: past.inboundWait }],
})}
</section>`,
    })
  })

  app.get('/admin/queues/:name', { config, schema }, async (request, reply) => {
    const name = nameIn(request)
    const [queue, discarding] = await Promise.all([
      findQueue(request.services, name),
      findDiscarding(request.services, request.console.actor, name),
    ])
    if (queue === undefined) throw new RequestFault(503, 'The queue is unavailable.')
    return sendConsolePage(request, reply, {
      title: `Queue ${name}: ${queue.state}`,
      content: html`${discarding && progressOf(discarding)}<section class="card">${readQueueStatus(queue)}</section>
${actionsOf(request, queue)}`,
    })
  })

  app.post('/admin/queues/:name/pause', { config, schema }, async (request, reply) => {
    const name = nameIn(request)
    await pauseQueue(request.services, request.console.actor, name, changeIn(request))
    return reply.redirect(`/admin/queues/${name}?flash=paused`, 303)
  })

  app.post('/admin/queues/:name/resume', { config, schema }, async (request, reply) => {
    const name = nameIn(request)
    await resumeQueue(request.services, request.console.actor, name, changeIn(request))
    return reply.redirect(`/admin/queues/${name}?flash=resumed`, 303)
  })

  app.post('/admin/queues/:name/drain', { config, schema }, async (request, reply) => {
    const name = nameIn(request)
    if (!isConfirmed(request, name)) {
      const preview = html`<p>The queue <b>${name}</b> accepts no jobs until it is resumed${
        name.startsWith('inbound') && ': other pods get 503 and send their messages again later'
      }. Running and waiting jobs are finished.</p>`
      return sendConfirmationPage(request, reply, { title: `Drain the queue ${name}`, label: name, preview })
    }
    await drainQueue(request.services, request.console.actor, name, { ...changeIn(request), confirm: name })
    return reply.redirect(`/admin/queues/${name}?flash=draining`, 303)
  })

  app.post('/admin/queues/:name/discard', { config, schema }, async (request, reply) => {
    const name = nameIn(request)
    if (!isConfirmed(request, name)) {
      const preview = html`<p>Deletes the jobs of <b>${name}</b> that have not begun. ${
        name.startsWith('inbound') ? 'Their messages become dead letters.' : 'Jobs with an outbox row are added again.'
      }</p>`
      return sendConfirmationPage(request, reply, { title: `Discard the jobs of ${name}`, label: name, preview })
    }
    const change = { ...changeIn(request), confirm: name }
    const { operation: task } = await discardJobs(request.services, request.console.actor, name, change)
    const flash = task === undefined ? 'discarded' : 'work_started'
    return reply.redirect(`/admin/queues/${name}?flash=${flash}`, 303)
  })

  app.post('/admin/queues/:name/promote', { config, schema }, async (request, reply) => {
    const name = nameIn(request)
    await promoteJobs(request.services, request.console.actor, name, changeIn(request))
    return reply.redirect(`/admin/queues/${name}?flash=promoted`, 303)
  })

  function changeIn(request: FastifyRequest): QueueChange {
    const hours = Number(formText(request, 'hours') ?? 0)
    const until = hours > 0 && hours <= 24 * 14 ? new Date(services.now().getTime() + hours * 3_600_000) : undefined
    return { reason: formText(request, 'reason'), until }
  }
}

function progressOf(discarding: BackgroundTask): Markup {
  const words = ({ reason }: BackgroundTask) => html`Discarding of jobs: <bdi>${reason}</bdi>`
  return html`${discarding.state === 'failed' && workFailed()}${operationProgress([discarding], words)}`
}

function nameIn({ params }: FastifyRequest): QueueName {
  const { name } = params as { readonly name: string } // part of every route with it
  if (!isQueueName(name)) throw new RequestFault(404, 'There is no queue with this name.')
  return name
}

function queueTable(queues: readonly QueueOverview[]): Markup {
  const isEmpty = queues.every(({ waiting, active, delayed }) => waiting + active + delayed === 0)
  return html`${isEmpty && html`<p>All queues are empty.</p>\n`}${dataTable({
    caption: 'Queues with their jobs; times are of the last hour',
    columns: [
      { title: 'Queue' },
      { title: 'State' },
      ...['Waiting', 'Running', 'Delayed', 'Dead'].map((title) => ({ title, kind: 'number' as const })),
      { title: 'Oldest', kind: 'number' },
      ...['A minute', '15 min', '1 h'].map((title) => ({ title, kind: 'number' as const })),
      { title: 'Wait, half / 95 %', kind: 'number' },
      { title: 'Run, half / 95 %', kind: 'number' },
      { title: 'Workers', kind: 'number' },
    ],
    rows: queues.map((queue) => [
      html`<a href="/admin/queues/${queue.name}">${queue.name}</a>`,
      stateOf(queue),
      ...[queue.waiting, queue.active, queue.delayed].map(formatCount),
      queue.failed === 0
        ? '0'
        : html`<a href="/admin/dead-letters?queue=${queue.name}">${formatCount(queue.failed)}</a>`,
      formatSeconds(queue.oldestSeconds),
      ...[queue.perMinute.minute, queue.perMinute.quarter, queue.perMinute.hour].map(formatRate),
      halfAndMost(queue.wait),
      halfAndMost(queue.run),
      queue.workers === 0 ? stateBadge('none', 'bad') : formatCount(queue.workers),
    ]),
  })}`
}

/** Two durations, one below the other, so that the table fits on a screen. */
function halfAndMost({ p50, p95 }: QueueOverview['wait']): Markup {
  return html`<span class="pair"><span>${formatMilliseconds(p50)} /</span> <span>${formatMilliseconds(p95)}</span></span>`
}

function stateOf({ state }: QueueOverview): Markup {
  return stateBadge(state, state === 'running' ? 'good' : 'warn')
}

function readQueueStatus(queue: QueueOverview): Markup {
  const { requested } = queue
  return detailList([
    ['State', stateOf(queue)],
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
    ['Dead', html`<a href="/admin/dead-letters?queue=${queue.name}">${formatCount(queue.failed)}</a>`],
    ['Workers', formatCount(queue.workers)],
  ])
}

function actionsOf(request: FastifyRequest, { name, state, waiting, delayed }: QueueOverview): Markup {
  const path = (action: string) => `/admin/queues/${name}/${action}`
  return html`${
    delayed > 0 &&
    html`<section class="card"><h2>Delayed jobs</h2><p>Makes up to 1 000 jobs due now.</p>
${actionForm(request, path('promote'), html`${reasonField()}<button class="quiet">Run delayed jobs now</button>`)}</section>\n`
  }${
    name !== 'maintenance' &&
    waiting + delayed > 0 &&
    html`<section class="card"><h2>Discard</h2><p>Deletes waiting jobs.</p>
${actionForm(request, path('discard'), html`${reasonField()}<button class="danger">Discard the jobs of ${name}…</button>`)}</section>\n`
  }${
    name === 'maintenance'
      ? html`<section class="card"><p>This queue cannot be stopped: it finds lost work again.</p></section>`
      : state === 'running'
        ? html`<section class="card"><h2>Pause</h2><p>Running jobs finish, and no other job starts. New jobs are accepted and wait.</p>
${actionForm(request, path('pause'), html`${reasonField()}${select('For', 'hours', PAUSES, '')}<button class="quiet">Pause ${name}</button>`)}</section>
<section class="card"><h2>Drain</h2><p>The queue accepts no new jobs, and the workers finish the existing ones.</p>
${actionForm(request, path('drain'), html`${reasonField()}<button class="danger">Drain ${name}</button>`)}</section>`
        : html`<section class="card"><h2>Resume</h2>
${actionForm(request, path('resume'), html`${reasonField()}<button>Resume ${name}</button>`)}</section>`
  }`
}
