import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from '../../src/config/config.js'
import {
  PRUNE_CATEGORIES,
  type PruneCategory,
  type PruneReport,
  previewPrune,
  prune,
  retentionDays,
} from '../../src/domain/operations/prune.js'
import { removeMovedFiles } from '../../src/domain/photos/moved-files.js'
import { removeOrphanedFiles } from '../../src/domain/photos/orphaned-files.js'
import { CommandError } from '../command-error.js'
import { runInterruptible } from '../interruptible.js'
import { readCount } from '../options.js'
import { type OutputOptions, print, table } from '../output.js'
import { describeBytes, showProgress } from '../progress.js'
import { requirePictureStores } from '../require-picture-stores.js'
import { withPod } from '../with-pod.js'

interface PruneCommandOptions extends OutputOptions {
  readonly dryRun?: boolean
  readonly category?: PruneCategory
  readonly olderThan?: number
  readonly limit?: number
  readonly withComments?: boolean
  readonly includeUnfetchable?: boolean
  readonly files?: boolean
}

type DescribedReport = Omit<PruneReport, 'category' | 'bytes'> & {
  readonly category: string
  readonly bytes: number | null
}

/** The shortest retention that the command accepts, in days. */
const MIN_DAYS: Readonly<Record<PruneCategory, number>> = { posts: 30, notifications: 1, dead: 1, tombstones: 90 }

const NAMES: Readonly<Record<PruneCategory, string>> = {
  posts: 'posts',
  notifications: 'notifications',
  dead: 'dead letters',
  tombstones: 'tombstones',
}

export function pruneCommand(program: Command): void {
  program
    .command('prune')
    .description(
      'Removes old rows: remote posts without a local interaction, read notifications, dead letters, tombstones.',
    )
    .option('--dry-run', 'remove nothing; show what would be removed and what stays')
    .addOption(new Option('--category <name>', 'only this category').choices([...PRUNE_CATEGORIES]))
    .option(
      '--older-than <days>',
      'instead of the days of the settings, like 90d; without --category not for tombstones',
      readDays,
    )
    .option('--limit <rows>', 'remove at most <rows> rows of each category', readCount)
    .option('--with-comments', 'also posts with comments, which cannot be fetched again from every pod')
    .option('--include-unfetchable', 'also private posts, and posts of closed pods and accounts')
    .option(
      '--files',
      'only pictures without a photo that are older than 7 days, and pictures of photos that moved 90 days ago',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod prune --category posts --older-than 90d --dry-run')
    .action(run)
}

async function run({ dryRun = false, category, olderThan, limit, ...options }: PruneCommandOptions): Promise<void> {
  if (options.files) {
    if (category !== undefined) throw new CommandError('--files is a category of its own: leave out --category.')
    if (olderThan !== undefined) throw new CommandError('--files has an age of its own: leave out --older-than.')
    return runFiles(dryRun, options)
  }
  const progress = showProgress()
  const reports: PruneReport[] = []
  const describeInterruption = () => {
    const removedRows = reports.reduce((sum, { rows }) => sum + rows, 0)
    return dryRun
      ? 'Nothing was changed.'
      : `${removedRows} rows were removed. Run the command again to remove the rest.`
  }
  await runInterruptible(describeInterruption, (signal) =>
    withPod(async (services) => {
      for (const [each, days] of chooseCategories(services.config, { category, olderThan })) {
        const work = {
          category: each,
          days,
          withComments: options.withComments ?? services.config.retention.withComments,
          includeUnfetchable: options.includeUnfetchable ?? false,
          notificationDays: retentionDays(services.config, 'notifications'),
          limit,
          signal,
          report: progress.report,
        }
        reports.push(await (dryRun ? previewPrune : prune)(services, work))
        signal.throwIfAborted()
      }
    }),
  ).finally(progress.end)
  const chosen = category === undefined ? PRUNE_CATEGORIES : [category]
  const leftOut = chosen.filter((each) => !reports.some((report) => report.category === each))
  print(options, { dry_run: dryRun, categories: reports }, [
    ...(reports.length === 0 ? [] : describe(reports, dryRun)),
    ...leftOut.map((each) => describeLeftOut(each, olderThan)),
  ])
}

/**
 * The categories of a run, with their days. Without a category, --older-than shortens only what the settings remove, and not how long
 * deletions are remembered: a post whose tombstone is gone can be stored again.
 */
function chooseCategories(
  config: Pick<Config, 'retention'>,
  { category, olderThan }: { readonly category: PruneCategory | undefined; readonly olderThan: number | undefined },
): readonly (readonly [PruneCategory, number])[] {
  if (category !== undefined && olderThan !== undefined) return [[category, checkDays(category, olderThan)]]
  return (category === undefined ? PRUNE_CATEGORIES : [category])
    .filter((each) => retentionDays(config, each) > 0 && !(each === 'tombstones' && olderThan !== undefined))
    .map((each) => [each, olderThan === undefined ? retentionDays(config, each) : checkDays(each, olderThan)])
}

function checkDays(category: PruneCategory, days: number): number {
  if (days >= MIN_DAYS[category]) return days
  throw new CommandError(`--older-than must be at least ${MIN_DAYS[category]} days for ${category}.`)
}

function describeLeftOut(category: PruneCategory, olderThan: number | undefined): string {
  const reason =
    category === 'tombstones' && olderThan !== undefined
      ? '--older-than applies to them only with --category'
      : `RETENTION_${category.toUpperCase()}_DAYS is 0`
  const days = Math.max(olderThan ?? 180, MIN_DAYS[category])
  return `All ${NAMES[category]} stay: ${reason}. "--category ${category} --older-than ${days}d" removes old ones.`
}

async function runFiles(dryRun: boolean, options: OutputOptions): Promise<void> {
  const removed = await runInterruptible(
    'Removed rows stay removed. Run the command again to remove the rest.',
    (signal) =>
      withPod(async (services) => {
        await requirePictureStores(services)
        const { db, pictures } = services
        return {
          orphans: await removeOrphanedFiles(db, pictures, { now: services.now(), dryRun, signal }),
          moved: await removeMovedFiles(db, pictures, { dryRun, signal }),
        }
      }),
  )
  const reports = [
    { category: 'files', ...removed.orphans, kept: {} },
    { category: 'moved photos', ...removed.moved, kept: {} },
  ]
  print(options, { dry_run: dryRun, categories: reports }, describe(reports, dryRun))
}

function describe(reports: readonly DescribedReport[], dryRun: boolean): string[] {
  return [
    ...table([
      ['category', 'older than', dryRun ? 'would be removed' : 'removed', ...(dryRun ? ['size', 'oldest'] : [])],
      ...reports.map(({ category, days, rows, bytes, oldest }) => [
        category,
        `${days} days`,
        String(rows),
        ...(dryRun ? [bytes === null ? '-' : describeBytes(bytes), oldest?.toISOString() ?? '-'] : []),
      ]),
    ]),
    ...reports.flatMap(({ category, kept }) =>
      Object.entries(kept).map(([reason, rows]) => `${rows} old ${category} stay: ${reason}`),
    ),
    ...(dryRun ? ['PostgreSQL keeps the space of removed rows for new ones.'] : []),
  ]
}

function readDays(text: string): number {
  const [, days] = /^([1-9][0-9]{0,4})d$/.exec(text.trim()) ?? []
  if (days === undefined) throw new InvalidArgumentError('Expected a number of days like 90d.')
  return Number(days)
}
