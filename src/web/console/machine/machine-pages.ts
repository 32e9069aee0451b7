import type { FastifyPluginAsync } from 'fastify'
import {
  listRunningProcesses,
  readDatabase,
  readStorage,
  type StorageReport,
} from '../../../domain/operations/machine.js'
import { isNearlyFull } from '../../../domain/operations/storage.js'
import { PHOTO_LIMITS } from '../../../domain/photos/limits.js'
import type { BackupMetrics } from '../../../persistence/operations/backup-runs.js'
import type { DatabaseStatus } from '../../../persistence/operations/database-status.js'
import type { PodProcess } from '../../../persistence/operations/processes.js'
import { html, type Markup } from '../../pages/markup.js'
import { sendConsolePage } from '../console-page.js'
import {
  formatBytes,
  formatCount,
  formatMilliseconds,
  formatRelativeTime,
  formatSeconds,
  formatTime,
} from '../quantities.js'
import { dataTable, detailList, listCard, stateBadge } from '../tables.js'

/** A share of the connections from which an operator should act. */
const NEARLY_FULL = 0.8
/** Backups are made daily. */
export const BACKUP_LATE_SECONDS = 26 * 3_600
/** The server stops writing at two billion. */
const TRANSACTIONS_WARN = 1_000_000_000

/** Time in which all processes are restarted with a new version. */
const RESTART_MS = 15 * 60_000

/** Whether processes of different versions run beside each other for longer than an update takes. */
export function haveDifferentVersions(processes: readonly PodProcess[], now: Date): boolean {
  const lastStart = Math.max(...processes.map(({ startedAt }) => startedAt.getTime()))
  return new Set(processes.map(({ version }) => version)).size > 1 && now.getTime() - lastStart > RESTART_MS
}

/** `/admin/workers`, `/admin/database` and `/admin/storage`: what the pod runs on. */
export const machineRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'administration' } as const
  const schema = { hide: true }

  app.get('/admin/workers', { config, schema }, async (request, reply) => {
    const processes = await listRunningProcesses(request.services, request.console.actor)
    const versions = new Set(processes.map(({ version }) => version))
    const workers = processes.filter(({ kind }) => kind === 'worker').length
    return sendConsolePage(request, reply, {
      title: `Processes: ${formatCount(processes.length)}`,
      content: html`<section class="card"><p class="soft small">As of ${formatTime(request.services.now())}. <a href="/admin/workers">Refresh</a></p>
${workers === 0 && html`<p class="alert" role="alert">No worker runs: nothing is processed.</p>`}
${haveDifferentVersions(processes, request.services.now()) && html`<p class="alert" role="alert">The processes have different versions: ${[...versions].join(', ')}.</p>`}
${processes.length === 0 ? html`<p>No process has written a heartbeat in the last 30 seconds.</p>` : processTable(processes, request.services.now())}</section>
${jobTable(processes, request.services.now())}`,
    })
  })

  app.get('/admin/database', { config, schema }, async (request, reply) => {
    const status = await readDatabase(request.services, request.console.actor)
    return sendConsolePage(request, reply, {
      title: `Database: ${formatBytes(status.bytes)}`,
      content: html`<section class="card">${renderDatabaseDetails(status)}</section>
<section class="card"><h2>Slow statements</h2>${slowStatements(status)}</section>
<section class="card"><h2>Largest tables</h2>${tableSizesTable(status)}</section>`,
    })
  })

  app.get('/admin/storage', { config, schema }, async (request, reply) => {
    const { actor } = request.console
    const { folders, store, pictures, movedPhotos, backup } = await readStorage(request.services, actor)
    return sendConsolePage(request, reply, {
      title: 'Storage',
      content: html`<section class="card">${dataTable({
        caption: 'Folders of this web process',
        columns: [
          { title: 'Folder' },
          { title: 'Free', kind: 'number' },
          { title: 'Size of the file system', kind: 'number' },
          { title: 'State' },
        ],
        rows: folders.map((folder) => [
          html`<bdi>${folder.folder}</bdi>`,
          formatBytes(folder.freeBytes),
          formatBytes(folder.totalBytes),
          folder.freeBytes === null
            ? stateBadge('cannot be read', 'bad')
            : isNearlyFull(folder)
              ? stateBadge('nearly full', 'bad')
              : stateBadge('enough space', 'good'),
        ]),
      })}</section>
<section class="card"><h2>Pictures</h2>${renderPictureDetails(store, pictures)}${renderMovedPhotos(movedPhotos)}</section>
<section class="card"><h2>Backups</h2>${renderBackupDetails(backup)}
<p class="soft small"><code>pod backup record</code> records a backup that another program has made, <code>pod backup verify</code> checks those of the pod.</p></section>`,
    })
  })
}

function renderPictureDetails(store: StorageReport['store'], pictures: StorageReport['pictures']): Markup {
  if (pictures === undefined) return html`<p>A worker counts the pictures once a day; none was counted yet.</p>`
  const { files, bytes, orphans, orphanBytes, countedAt } = pictures
  const orphanText = html`${formatCount(orphans)}, ${formatBytes(orphanBytes)}`
  return html`${detailList([
    ['Stored in', store === 's3' ? 'S3' : 'the folder of uploads'],
    ['Files', formatCount(files)],
    ['Size', formatBytes(bytes)],
    ['Without a photo', orphanText],
    ['Counted', formatTime(countedAt)],
  ])}${orphans > 0 && html`<p class="soft small"><code>pod prune --files</code> deletes files without a photo that are older than a week.</p>`}`
}

function renderMovedPhotos(photos: number): Markup | false {
  if (photos === 0) return false
  return html`<p class="soft small">The files of ${formatCount(photos)} photos belong to accounts that have moved away. A worker deletes them ${PHOTO_LIMITS.movedFileDays} days after the move.</p>`
}

/** The numbers of the last complete backup. */
function renderBackupDetails({ age, duration, bytes: size, failures, tool, verifiedAge }: BackupMetrics): Markup {
  const isLate = age === null || age > BACKUP_LATE_SECONDS
  const state = isLate ? stateBadge(age === null ? 'there is none' : 'too old', 'bad') : stateBadge('in time', 'good')
  return detailList([
    ['Last complete backup', html`${age === null ? 'never' : `${formatSeconds(age)} ago`} ${state}`],
    ...(tool === null ? [] : [['Made by', html`<bdi>${tool}</bdi>`] as const]),
    [
      'Restored or checked, of those recorded',
      verifiedAge === null ? 'none' : `one of ${formatSeconds(verifiedAge)} ago`,
    ],
    ...(age === null
      ? []
      : [['Its duration', formatSeconds(duration)] as const, ['Its size', formatBytes(size)] as const]),
    ['Runs that failed', formatCount(failures)],
  ])
}

function processTable(processes: readonly PodProcess[], now: Date): Markup {
  return dataTable({
    caption: 'Processes with a heartbeat in the last 30 seconds',
    columns: [
      { title: 'Process' },
      { title: 'Version' },
      { title: 'Started' },
      { title: 'Heartbeat' },
      { title: 'Memory', kind: 'number' },
      { title: 'Heap', kind: 'number' },
      { title: 'Event loop busy', kind: 'number' },
      { title: 'Late, 99 %', kind: 'number' },
      { title: 'Threads busy', kind: 'number' },
      { title: 'Jobs', kind: 'number' },
      { title: 'Queues', kind: 'wide' },
    ],
    rows: processes.map(({ kind, host, pid, version, startedAt, seenAt, facts: status }) => [
      html`${kind} <bdi>${host}</bdi> ${pid}`,
      version,
      formatTime(startedAt),
      formatRelativeTime(seenAt, now),
      formatBytes(status.rssBytes),
      formatBytes(status.heapBytes),
      `${status.busyPercent} %`,
      formatMilliseconds(status.loopLagMs ?? null),
      threadsOf(status),
      formatCount(status.jobs.length),
      status.queues.join(', ') || '–',
    ]),
  })
}

function threadsOf({ threads }: PodProcess['facts']): string {
  if (threads === undefined) return '–'
  const { busy, max, waiting } = threads
  return waiting === 0 ? `${busy} of ${max}` : `${busy} of ${max}, ${formatCount(waiting)} tasks wait`
}

function jobTable(processes: readonly PodProcess[], now: Date): Markup | '' {
  const jobs = processes.flatMap(({ host, pid, facts: status }) => status.jobs.map((job) => ({ host, pid, ...job })))
  if (jobs.length === 0) return ''
  return html`<section class="card"><h2>Running jobs</h2>${dataTable({
    caption: 'Jobs in hand at the last heartbeat, without their data',
    columns: [
      { title: 'Job' },
      { title: 'Queue' },
      { title: 'Attempt', kind: 'number' },
      { title: 'Began' },
      { title: 'Process' },
    ],
    rows: jobs.map(({ name, queue, attempt, since, host, pid }) => [
      name,
      queue,
      formatCount(attempt),
      formatRelativeTime(new Date(since), now),
      html`<bdi>${host}</bdi> ${pid}`,
    ]),
  })}</section>`
}

function renderDatabaseDetails(status: DatabaseStatus): Markup {
  const { connections, maxConnections, longestTransaction, waitingLocks, transactionAge, replicas, replicaLag } = status
  const share = connections / maxConnections
  return detailList([
    ['PostgreSQL', status.version],
    ['Size', formatBytes(status.bytes)],
    [
      'Connections',
      html`${connections} of ${maxConnections} ${share > NEARLY_FULL && stateBadge('nearly all in use', 'warn')}`,
    ],
    ['Longest transaction', formatSeconds(longestTransaction)],
    ['Waiting locks', formatCount(waitingLocks)],
    [
      'Transaction id age',
      html`${formatCount(transactionAge)} ${transactionAge > TRANSACTIONS_WARN && stateBadge('vacuum is late', 'bad')}`,
    ],
    ['Replicas', replicas === 0 ? 'none' : `${replicas}, lag ${formatSeconds(replicaLag)}`],
  ])
}

function slowStatements({ slowStatements: statements, slowStatementSource }: DatabaseStatus): Markup {
  const source =
    slowStatementSource === 'sample'
      ? 'Statements of more than half a second in the last hour, as the running processes have measured them. The extension pg_stat_statements counts longer.'
      : 'As the extension pg_stat_statements has counted them since its last reset, of all clients.'
  const table = {
    caption: 'Statements without their values, those that took longest first',
    columns: [
      { title: 'Longest', kind: 'number' as const },
      { title: 'Times', kind: 'number' as const },
      { title: 'Statement', kind: 'wide' as const },
    ],
    rows: statements.map(({ text, count, maxMs }) => [
      formatMilliseconds(maxMs),
      formatCount(count),
      html`<code>${text}</code>`,
    ]),
  }
  return html`<p>${source}</p>${listCard(table, { empty: 'There are none.' })}`
}

function tableSizesTable({ tables }: DatabaseStatus): Markup {
  return dataTable({
    caption: 'Sizes with indexes; rows are estimates of the server',
    columns: [
      { title: 'Table' },
      { title: 'Size', kind: 'number' },
      { title: 'Rows', kind: 'number' },
      { title: 'Dead rows', kind: 'number' },
      { title: 'Last vacuum' },
    ],
    rows: tables.map(({ name, bytes: size, rows, deadRows, vacuumedAt }) => [
      name,
      formatBytes(size),
      formatCount(rows),
      formatCount(deadRows),
      formatTime(vacuumedAt),
    ]),
  })
}
