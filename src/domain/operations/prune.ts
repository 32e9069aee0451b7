import { setTimeout as pause } from 'node:timers/promises'
import type { Config } from '../../config/config.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import {
  findNewestPostId,
  type PostChunk,
  type PostRetention,
  previewPosts,
  prunePosts,
} from '../../persistence/retention/prune-posts.js'
import { findPruneStart, type PruneStep, recordPruneStep } from '../../persistence/retention/prune-progress.js'
import {
  type DeadLetterLimits,
  deleteDeadUpTo,
  deleteRows,
  findDeadBeyondLimits,
  previewRows,
  type RowCategory,
} from '../../persistence/retention/prune-rows.js'
import type { Services } from '../../services/services.js'

/** Rows of one transaction. */
const ROW_BATCH_SIZE = 500
/** Rows that one statement of a preview reads. */
const PREVIEW_ROWS = 2_000
/** Posts are read from the newest one: reshares are removed before their roots. */
const ABOVE_ALL_IDS = Number.MAX_SAFE_INTEGER
/** Pause between batches, as a multiple of the batch duration: the removal works for a fifth of the time. */
const REST_FACTOR = 4

export const PRUNE_CATEGORIES = ['posts', 'notifications', 'dead', 'tombstones'] as const
export type PruneCategory = (typeof PRUNE_CATEGORIES)[number]

export interface PruneOptions {
  readonly category: PruneCategory
  readonly days: number
  readonly withComments: boolean
  readonly includeUnfetchable: boolean
  /** Days for which read notifications are kept, and posts because of them; 0: forever. */
  readonly notificationDays: number
  /** Maximum number of removed rows. Undefined: all. */
  readonly limit?: number | undefined
  readonly signal: AbortSignal
  /** Called after each chunk. */
  readonly report?: ReportProgress
}

export interface PruneReport {
  readonly category: PruneCategory
  readonly days: number
  /** Removed rows, or rows that would be removed. */
  readonly rows: number
  readonly bytes: number
  readonly oldest: Date | null
  /** The number of old rows that stay, by reason. */
  readonly kept: Readonly<Record<string, number>>
}

/** The days of the settings; 0: nothing is removed. */
export function retentionDays({ retention }: Pick<Config, 'retention'>, category: PruneCategory): number {
  return retention[category]
}

/** Counts the rows that `prune` would remove, and the rows that stay, by reason. Writes nothing. */
export async function previewPrune({ db }: Pick<Services, 'db'>, options: PruneOptions): Promise<PruneReport> {
  const { category, days, limit = Number.POSITIVE_INFINITY, signal } = options
  if (category !== 'posts') return { category, days, ...(await previewRows(db, category, days, limit)), kept: {} }
  let report = emptyReport(options)
  const reportRead = await postProgress(db, options, ABOVE_ALL_IDS)
  for (let before = ABOVE_ALL_IDS; report.rows < limit; ) {
    signal.throwIfAborted()
    const chunk = await previewPosts(db, options, { before, rows: PREVIEW_ROWS, limit: limit - report.rows })
    report = addChunk(report, chunk)
    if (chunk.lastId === null) break
    before = chunk.lastId
    reportRead(before)
  }
  return report
}

/** Removes old rows in small transactions, and is busy for a fifth of the time. An interrupted run is continued by the next one. */
export async function prune(services: Pick<Services, 'db'>, options: PruneOptions): Promise<PruneReport> {
  const { category } = options
  const report = await (category === 'posts'
    ? pruneOldPosts(services, options, ABOVE_ALL_IDS)
    : pruneRows(services, options, category))
  await recordPruneStep(services.db, category, { removed: report.rows, found: foundRows(report) })
  return report
}

/** Categories whose old rows are found by an index, so that they need not wait for the next day. */
const INDEXED: ReadonlySet<PruneCategory> = new Set(['dead', 'tombstones'])

/** Dead letters come first: they have a bound, and many old posts need all the time of many runs. */
const ORDER_OF_RUNS: readonly PruneCategory[] = ['dead', 'tombstones', 'notifications', 'posts']

/**
 * Continues the daily removal of what the settings limit, for this number of milliseconds. Returns the number of removed rows by category.
 */
export async function continuePrune(
  services: Pick<Services, 'config' | 'db'>,
  withinMs: number,
  deadLetterLimits?: DeadLetterLimits,
): Promise<Readonly<Partial<Record<PruneCategory, number>>>> {
  const signal = AbortSignal.timeout(withinMs)
  const { withComments, notifications: notificationDays } = services.config.retention
  const removedRows: Partial<Record<PruneCategory, number>> = {}
  for (const category of ORDER_OF_RUNS) {
    const days = retentionDays(services.config, category)
    if (days === 0 || signal.aborted) continue
    const start = INDEXED.has(category) ? 0 : await findPruneStart(services.db, category)
    if (start === undefined) continue
    const options = { category, days, withComments, includeUnfetchable: false, notificationDays, signal }
    const onStep = (step: PruneStep) => recordPruneStep(services.db, category, step)
    if (category === 'posts') {
      removedRows.posts = (await pruneOldPosts(services, options, start || ABOVE_ALL_IDS, onStep)).rows
    } else {
      const { rows: expiredRows } = await pruneRows(services, options, category)
      const rows =
        category === 'dead'
          ? expiredRows + (await pruneDeadBeyondLimits(services, signal, deadLetterLimits))
          : expiredRows
      removedRows[category] = rows
      await onStep({ removed: rows, found: rows, lastId: signal.aborted ? 0 : null })
    }
  }
  return removedRows
}

/** `onStep` is called after each chunk. */
async function pruneOldPosts(
  { db }: Pick<Services, 'db'>,
  options: PruneOptions,
  start: number,
  onStep?: (step: PruneStep) => Promise<void>,
): Promise<PruneReport> {
  const { limit = Number.POSITIVE_INFINITY, signal } = options
  const retention: PostRetention = options
  let report = emptyReport(options)
  const reportRead = await postProgress(db, options, start)
  for (let before = start; report.rows < limit && !signal.aborted; ) {
    const began = performance.now()
    const chunk = await prunePosts(db, retention, { before, rows: ROW_BATCH_SIZE, limit: limit - report.rows })
    const step = addChunk(emptyReport(options), chunk)
    await onStep?.({ removed: step.rows, found: foundRows(step), lastId: chunk.lastId })
    report = addChunk(report, chunk)
    if (chunk.lastId === null) break
    before = chunk.lastId
    reportRead(before, `${report.rows} removed`)
    await pauseAfterBatch(began, signal)
  }
  return report
}

/** Posts are read in order of their ids, most of which stay on many pods: progress is the share of the ids. */
async function postProgress(
  db: Services['db'],
  { category: step, report }: PruneOptions,
  start: number,
): Promise<(lastId: number, note?: string) => void> {
  if (report === undefined) return () => undefined
  const total = Math.min(await findNewestPostId(db), start)
  return (lastId, note) => report({ step, done: total - lastId, total, note })
}

async function pruneRows(
  { db }: Pick<Services, 'db'>,
  options: PruneOptions,
  category: RowCategory,
): Promise<PruneReport> {
  const { days, limit = Number.POSITIVE_INFINITY, signal } = options
  let removedRows = 0
  while (removedRows < limit && !signal.aborted) {
    const began = performance.now()
    const rows = await deleteRows(db, category, days, Math.min(ROW_BATCH_SIZE, limit - removedRows))
    removedRows += rows
    options.report?.({ step: category, done: removedRows, total: undefined })
    if (rows === 0) break
    await pauseAfterBatch(began, signal)
  }
  return { ...emptyReport(options), rows: removedRows }
}

/** The failures of one day may be more than a table should hold for all days of the setting. */
async function pruneDeadBeyondLimits(
  { db }: Pick<Services, 'db'>,
  signal: AbortSignal,
  limits: DeadLetterLimits | undefined,
): Promise<number> {
  const upTo = await findDeadBeyondLimits(db, limits)
  let removedRows = 0
  while (upTo !== undefined && !signal.aborted) {
    const began = performance.now()
    const rows = await deleteDeadUpTo(db, upTo, ROW_BATCH_SIZE)
    removedRows += rows
    if (rows === 0) break
    await pauseAfterBatch(began, signal)
  }
  return removedRows
}

/** Waits four times as long as the work took, so that the database serves others in the meantime. */
async function pauseAfterBatch(began: number, signal: AbortSignal): Promise<void> {
  const busy = performance.now() - began
  await pause(busy * REST_FACTOR, undefined, { signal }).catch(() => undefined)
}

function foundRows({ rows, kept }: PruneReport): number {
  return Object.values(kept).reduce((sum, each) => sum + each, rows)
}

function emptyReport({ category, days }: PruneOptions): PruneReport {
  return { category, days, rows: 0, bytes: 0, oldest: null, kept: {} }
}

function addChunk(report: PruneReport, { groups }: PostChunk): PruneReport {
  let { rows, bytes, oldest } = report
  const keptRows: Record<string, number> = { ...report.kept }
  for (const group of groups) {
    if (group.reason !== null) {
      keptRows[group.reason] = (keptRows[group.reason] ?? 0) + group.rows
      continue
    }
    rows += group.rows
    bytes += group.bytes
    oldest = oldest === null || group.oldest < oldest ? group.oldest : oldest
  }
  return { ...report, rows, bytes, oldest, kept: keptRows }
}
