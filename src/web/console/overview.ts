import type { FastifyPluginAsync } from 'fastify'
import { readSoftware } from '../../config/software.js'
import { hasPower } from '../../domain/accounts/role-powers.js'
import { type ModerationOverview, readOverview } from '../../domain/moderation/cases.js'
import { openWorkReport, type WorkReport } from '../../domain/operations/machine.js'
import { isNearlyFull } from '../../domain/operations/storage.js'
import { SWEEP_LIMITS } from '../../persistence/database/limits.js'
import { html, type Markup } from '../pages/markup.js'
import { sendConsolePage } from './console-page.js'
import { BACKUP_LATE_SECONDS, haveDifferentVersions } from './machine/machine-pages.js'
import { formatCount, formatSeconds, formatTime } from './quantities.js'

/** `/admin`: what needs a decision, and the state of the pod. */
export const overviewRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { version } = readSoftware()
  const readWork = openWorkReport(services)

  app.get('/admin', { config: { power: 'moderation' }, schema: { hide: true } }, async (request, reply) => {
    const { staff, actor } = request.console
    const isAdmin = hasPower(staff.role, 'administration')
    const [work, waiting] = await Promise.all([
      isAdmin ? readWork(actor) : undefined,
      readOverview(request.services, actor),
    ])
    return sendConsolePage(request, reply, {
      title: 'Overview',
      content: html`${decisions(waiting)}${
        work !== undefined && workSections(describeWork(work, services.now()), services.now())
      }<section class="card"><h2>Software</h2><p>Version ${version}, Node.js ${process.versions.node}, queue in ${services.jobs.store === 'redis' ? 'Redis' : 'PostgreSQL'}.</p>${work !== undefined && lastBackup(work)}</section>`,
    })
  })
}

function lastBackup({ backup: { age } }: WorkReport): Markup {
  return html`<p><a href="/admin/storage">Last backup</a>: ${age === null ? 'never' : `${formatSeconds(age)} ago`}.</p>`
}

function workSections({ warnings, tiles }: ReturnType<typeof describeWork>, now: Date): Markup {
  return html`<section class="card"><h2>Warnings</h2>${
    warnings.length === 0
      ? html`<p>None.</p>`
      : html`<ul class="warnings">${warnings.map((warning) => html`<li>${warning}</li>`)}</ul>`
  }</section>
<section class="card"><h2>Work</h2><p class="soft small">As of ${formatTime(now)}. <a href="/admin">Refresh</a></p>
<ul class="tiles list">${tiles.map(({ name, value, path }) => html`<li><b>${value}</b> <a href="${path}">${name}</a></li>`)}</ul></section>
`
}

/** Items that wait for a decision of a moderator. */
function decisions({ cases: { open, taken, oldest }, signUps }: ModerationOverview): Markup {
  const reports =
    open + taken > 0 &&
    html`<li><a href="/admin/reports?state=open">${formatCount(open)} open ${open === 1 ? 'report' : 'reports'}</a>${
      taken > 0 && html`, <a href="/admin/reports?state=taken">${formatCount(taken)} taken</a>`
    }, the oldest of ${formatTime(oldest)}</li>`
  const pending = signUps.pending
  const waiting =
    pending > 0 &&
    html`<li><a href="/admin/sign-ups">${formatCount(pending)} ${pending === 1 ? 'sign-up' : 'sign-ups'}</a>, the oldest of ${formatTime(signUps.oldest)}</li>`
  return html`<section class="card"><h2>Decisions</h2>${
    reports === false && waiting === false
      ? html`<p>Nothing waits for you.</p>`
      : html`<ul class="warnings">${reports}${waiting}</ul>`
  }</section>\n`
}

/** The failed job of a row is not counted beside its row. */
function deadLetterCount({ outbox, deliveries }: WorkReport['work'], failedJobs: WorkReport['failedJobs']): string {
  if (failedJobs === undefined) return 'unknown'
  const total = outbox.dead + deliveries.dead + failedJobs.counts.reduce((sum, { count }) => sum + count, 0)
  return failedJobs.isCut ? `at least ${formatCount(total)}` : formatCount(total)
}

interface Tile {
  readonly name: string
  readonly value: string
  readonly path: string
}

function describeWork(
  { work, failedJobs, processes, requestedStates, folders, checks, newerRelease, backup }: WorkReport,
  now: Date,
): {
  readonly warnings: readonly Markup[]
  readonly tiles: readonly Tile[]
} {
  const queues = Object.entries(work.queues ?? {})
  const totalOf = (read: (queue: (typeof queues)[number][1]) => number) =>
    formatCount(queues.reduce((total, [, queue]) => total + read(queue), 0))
  const unservedQueues = queues.filter(([, { workers, waiting }]) => workers === 0 && waiting > 0).map(([name]) => name)
  const stoppedQueues = requestedStates.filter(({ state }) => state !== 'running')
  const isSwept = work.lastSweep !== null && work.lastSweep < SWEEP_LIMITS.staleSeconds
  const low = folders.filter(isNearlyFull)
  const failed = checks.filter(({ state }) => state === 'fail')
  return {
    warnings: [
      ...(work.queues === null ? [html`The queue is unavailable.`] : []),
      ...(processes.some(({ kind }) => kind === 'worker')
        ? []
        : [html`<a href="/admin/workers">No worker</a> has written a heartbeat.`]),
      ...(isSwept ? [] : [html`The sweeper, which restores lost jobs, has not run in the last minute.`]),
      ...unservedQueues.map(
        (name) => html`<a href="/admin/queues/${name}">${name}</a> has waiting jobs and no worker.`,
      ),
      ...stoppedQueues.map(({ queue, state }) => html`<a href="/admin/queues/${queue}">${queue}</a> is ${state}.`),
      ...low.map(({ folder }) => html`<a href="/admin/storage"><bdi>${folder}</bdi></a> is nearly full.`),
      ...failed.map(({ name }) => html`The <a href="/admin/checks">check</a> of ${name} has failed.`),
      ...(haveDifferentVersions(processes, now)
        ? [html`<a href="/admin/workers">Processes</a> of different versions run beside each other.`]
        : []),
      ...(backup.age === null ? [html`There is <a href="/admin/storage">no backup</a> of the pod.`] : []),
      ...(backup.age !== null && backup.age > BACKUP_LATE_SECONDS
        ? [html`The last <a href="/admin/storage">backup</a> is ${formatSeconds(backup.age)} old.`]
        : []),
      ...(newerRelease === undefined ? [] : [html`Version ${newerRelease} of the program is available.`]),
    ],
    tiles: [
      { name: 'waiting jobs', value: totalOf(({ waiting }) => waiting), path: '/admin/queues' },
      { name: 'running jobs', value: totalOf(({ active }) => active), path: '/admin/workers' },
      { name: 'waiting deliveries', value: formatCount(work.deliveries.waiting), path: '/admin/pods?sort=waiting' },
      { name: 'pods asleep', value: formatCount(work.podsAsleep), path: '/admin/pods?state=asleep' },
      {
        name: 'dead letters',
        value: deadLetterCount(work, failedJobs),
        path: '/admin/dead-letters',
      },
    ],
  }
}
