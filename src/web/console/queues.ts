import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { cacheResult } from '../../concurrency/cache-result.js'
import {
  discardJobs,
  drainQueue,
  findDiscarding,
  findQueue,
  listJobs,
  listQueues,
  pauseQueue,
  promoteJobs,
  type QueueChange,
  type QueueOverview,
  resumeQueue,
} from '../../domain/operations/queues.js'
import { activityHistory } from '../../jobs/operations/activity-history.js'
import { readAcceptedRate } from '../../jobs/operations/queue-rates.js'
import { JOB_STATES } from '../../jobs/queues/inspect-queues.js'
import { isInboundQueue, isQueueName, type QueueName } from '../../jobs/queues/queue-names.js'
import type { Services } from '../../services/services.js'
import { JOB_CURSOR, readJobPage } from '../api/job-paging.js'
import { formText } from '../forms/form-text.js'
import { html, type Markup } from '../pages/markup.js'
import type { InboundEndpoint } from '../routes/federation/inbound-endpoint.js'
import { queryText } from '../schemas/query-text.js'
import { RequestFault } from '../server/request-faults.js'
import { addFormAction, type CurrentState, pathWithParameters, ShowPage, showAfterChange } from './actions.js'
import { lineChart } from './charts.js'
import { sendConsolePage } from './console-page.js'
import { formatCount, formatMilliseconds, formatRate, formatSeconds, formatTime } from './quantities.js'
import { type InboundSpace, queueDetails, queuePage, queueState, versionOfQueue } from './queue-page.js'
import { dataTable, stateBadge } from './tables.js'

const HISTORY_FRESH_MS = 60_000
const JOBS_OF_PAGE = 50

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
      content: html`<section class="card"><p class="soft small">As of ${formatTime(request.services.now())}. <a href="/admin/queues">Refresh</a></p>
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
    const state = JOB_STATES.find((each) => each === queryText(request, 'state')) ?? 'waiting'
    const page = readJobPage(JOB_CURSOR.exec(queryText(request, 'cursor') ?? '') ?? undefined, JOBS_OF_PAGE)
    const [queue, discarding, jobs, space] = await Promise.all([
      findQueue(request.services, name),
      findDiscarding(request.services, request.console.actor, name),
      listJobs(request.services, name, state, page).catch(() => undefined),
      isInboundQueue(name) ? readInboundSpace(request.services, app.inboundEndpoint) : undefined,
    ])
    if (queue === undefined || jobs === undefined) throw new RequestFault(503, 'The queue is unavailable.')
    return sendConsolePage(request, reply, queuePage(request, { queue, discarding, space, jobs: { ...jobs, state } }))
  })

  addQueueActions(app)
}

function addQueueActions(app: FastifyInstance): void {
  const common = {
    power: 'administration',
    page: pathWithParameters('/admin/queues/:name'),
    current: (request: FastifyRequest) => currentQueue(request, nameIn(request)),
  } as const
  const confirmed = { ...common, label: nameIn } as const

  addFormAction(app, {
    ...common,
    path: '/admin/queues/:name/pause',
    title: 'Pause the queue',
    flash: 'paused',
    run: (request) => pauseQueue(...queueArguments(request), changeIn(request)),
  })
  addFormAction(app, {
    ...common,
    path: '/admin/queues/:name/resume',
    title: 'Resume the queue',
    flash: 'resumed',
    run: (request) => resumeQueue(...queueArguments(request), changeIn(request)),
  })
  addFormAction(app, {
    ...confirmed,
    path: '/admin/queues/:name/drain',
    title: 'Drain the queue',
    flash: 'draining',
    effect: (request) => {
      const name = nameIn(request)
      return html`<p>The queue <b>${name}</b> accepts no jobs until it is resumed${
        isInboundQueue(name) && ': other pods get 503 and send their messages again later'
      }. Running and waiting jobs are finished.</p>`
    },
    run: (request, confirm) => drainQueue(...queueArguments(request), { ...changeIn(request), confirm }),
  })
  addFormAction(app, {
    ...confirmed,
    path: '/admin/queues/:name/discard',
    title: 'Discard the jobs',
    flash: 'discarded',
    effect: (request) => {
      const name = nameIn(request)
      return html`<p>Deletes the jobs of <b>${name}</b> that have not begun. ${
        isInboundQueue(name) ? 'Their messages become dead letters.' : 'Jobs with an outbox row are added again.'
      }</p>`
    },
    run: async (request, confirm) => {
      const { count, task } = await discardJobs(...queueArguments(request), { ...changeIn(request), confirm })
      return count === 0 ? new ShowPage(common.page(request), 'no_jobs') : showAfterChange(common.page(request), task)
    },
  })
  addFormAction(app, {
    ...common,
    path: '/admin/queues/:name/promote',
    title: 'Promote the jobs',
    flash: 'promoted',
    run: async (request) => {
      const only = { name: textIn(request, 'name'), pod: textIn(request, 'pod') }
      const count = await promoteJobs(...queueArguments(request), { ...changeIn(request), ...only })
      return count === 0 ? new ShowPage(common.page(request), 'no_jobs') : undefined
    },
  })
}

function queueArguments(request: FastifyRequest) {
  return [request.services, request.console.actor, nameIn(request)] as const
}

function changeIn(request: FastifyRequest): QueueChange {
  const hours = Number(formText(request, 'hours') ?? 0)
  const isValid = hours > 0 && hours <= 24 * 14
  const until = isValid ? new Date(request.services.now().getTime() + hours * 3_600_000) : undefined
  return { reason: formText(request, 'reason'), until }
}

function textIn(request: FastifyRequest, name: string): string | undefined {
  return formText(request, name)?.trim() || undefined
}

async function currentQueue(request: FastifyRequest, name: QueueName): Promise<CurrentState> {
  const queue = await requireQueue(request, name)
  return { version: versionOfQueue(queue), state: queueDetails(queue) }
}

async function requireQueue(request: FastifyRequest, name: QueueName): Promise<QueueOverview> {
  const queue = await findQueue(request.services, name)
  if (queue === undefined) throw new RequestFault(503, 'The queue is unavailable.')
  return queue
}

async function readInboundSpace(services: Services, { packing }: InboundEndpoint): Promise<InboundSpace> {
  const { heldBytes, queuedBytes, queuedMessages } = packing.size()
  const maxBytes = services.config.inboundBytes
  const perMinute = await readAcceptedRate(services)
  const bytesPerSecond = queuedMessages === 0 ? 0 : (perMinute / 60) * (queuedBytes / queuedMessages)
  return {
    usedBytes: heldBytes + queuedBytes,
    maxBytes,
    fullAfterSeconds: bytesPerSecond === 0 ? null : (maxBytes - heldBytes - queuedBytes) / bytesPerSecond,
  }
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
      ...['Waiting', 'Running', 'Delayed', 'Failed'].map((title) => ({ title, kind: 'number' as const })),
      { title: 'Oldest', kind: 'number' },
      ...['A minute', '15 min', '1 h'].map((title) => ({ title, kind: 'number' as const })),
      { title: 'Wait, half / 95 %', kind: 'number' },
      { title: 'Run, half / 95 %', kind: 'number' },
      { title: 'Workers', kind: 'number' },
    ],
    rows: queues.map((queue) => [
      html`<a href="/admin/queues/${queue.name}">${queue.name}</a>`,
      queueState(queue),
      ...[queue.waiting, queue.active, queue.delayed].map(formatCount),
      queue.failed === 0
        ? '0'
        : html`<a href="/admin/queues/${queue.name}?state=failed">${formatCount(queue.failed)}</a>`,
      formatSeconds(queue.oldestSeconds),
      ...[queue.perMinute.minute, queue.perMinute.quarter, queue.perMinute.hour].map(formatRate),
      medianAndP95(queue.wait),
      medianAndP95(queue.run),
      queue.workers === 0 ? stateBadge('none', 'bad') : formatCount(queue.workers),
    ]),
  })}`
}

/** Two durations, one below the other, so that the table fits on a screen. */
function medianAndP95({ p50, p95 }: QueueOverview['wait']): Markup {
  return html`<span class="pair"><span>${formatMilliseconds(p50)} /</span> <span>${formatMilliseconds(p95)}</span></span>`
}
