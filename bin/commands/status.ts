import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { readMovedFiles } from '../../src/domain/photos/moved-files.js'
import { openActivityCounts } from '../../src/jobs/operations/activity-rates.js'
import { type RecentActivity, readRecentActivity } from '../../src/jobs/operations/recent-activity.js'
import { isIdle, readWorkStatus, type WorkStatus } from '../../src/jobs/operations/work-status.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { readBackupMetrics } from '../../src/persistence/operations/backup-runs.js'
import type { Services } from '../../src/services/services.js'
import { CommandError } from '../command-error.js'
import { runUntilInterrupted } from '../interruptible.js'
import { readDuration } from '../options.js'
import { type OutputOptions, print, table } from '../output.js'
import { waitForQueue } from '../wait-for-queue.js'
import { watchScreen } from '../watch-screen.js'
import { withPod } from '../with-pod.js'

const POLL_INTERVAL_MS = 200
const DEFAULT_TIMEOUT_SECONDS = 60
const WATCH_INTERVAL_SECONDS = 2

export function workCommands(program: Command): void {
  program
    .command('status')
    .description(
      'Shows pending and recent work: jobs by queue, outbox, deliveries, workers, rejected messages with reasons.',
    )
    .option('--watch', 'repeat until Ctrl-C: redraws the screen on a terminal, prints one line per interval elsewhere')
    .option('--interval <time>', 'interval of --watch', readDuration, WATCH_INTERVAL_SECONDS)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod status --watch')
    .action(status)

  program
    .command('wait-idle')
    .description('Waits until there is no job, outbox row or due delivery.')
    .option('--timeout <time>', 'maximum wait, for example 90s or 5m', readDuration, DEFAULT_TIMEOUT_SECONDS)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod wait-idle --timeout 30')
    .action(waitIdle)
}

async function status(options: OutputOptions & { watch?: boolean; interval: number }): Promise<void> {
  if (options.watch) return watch(options)
  const { workStatus, past, backup, movedPhotos } = await withPod(async (services) => ({
    workStatus: await readStatus(services),
    past: await readRecentActivity(services),
    backup: await readBackupMetrics(services.db),
    movedPhotos: await readMovedFiles(services.db),
  }))
  print(options, { ...workStatus, ...presentActivity(past), backup, movedPhotos }, [
    ...describe(workStatus, past, [
      ['last backup', backup.age === null ? 'never' : `${ageText(backup.age)} ago`],
      ...(movedPhotos.files === 0
        ? []
        : [['files of moved photos', `${movedPhotos.files}, of which ${movedPhotos.due} are due for deletion`]]),
    ]),
    '',
    ...describePast(past),
  ])
}

async function watch({ interval: seconds, json }: OutputOptions & { readonly interval: number }): Promise<void> {
  await withPod(async (services) =>
    runUntilInterrupted(async (signal) => {
      const countActivity = openActivityCounts(services)
      let countedAt = 0
      const screen = { isTTY: process.stdout.isTTY && !json, write: (text: string) => process.stdout.write(text) }
      await watchScreen(screen, { seconds, signal }, async () => {
        const [workStatus, past, counts] = await Promise.all([
          readWorkStatus(services),
          readRecentActivity(services),
          countActivity(),
        ])
        const now = performance.now()
        const rates = ratesOf(counts, (now - countedAt) / 1_000)
        countedAt = now
        const at = new Date().toISOString()
        return {
          lines: [`${at}  ${rates}`, '', ...describe(workStatus, past), '', ...describePast(past)],
          summary: json
            ? JSON.stringify({ at, ...workStatus, ...presentActivity(past) })
            : `${at}  ${summarizeWork(workStatus)}, ${rates}`,
        }
      })
    }),
  )
}

/** The activity as `--json` prints it. `lately` has the names of earlier versions, for scripts that read them. */
function presentActivity({ perMinute, received, inboundResults, deliveryAttempts }: RecentActivity) {
  const { stored, ignored, rejected, waiting, dead } = inboundResults
  const takenIn = { stored, passedOver: ignored, wrong: rejected, waited: waiting, dead }
  return {
    recentActivity: { perMinute, received, inboundResults, deliveryAttempts },
    lately: { perMinute, received, takenIn, tries: deliveryAttempts },
  }
}

/** Processes store their counters every few seconds, so that a rate moves in steps. */
function ratesOf(counts: Awaited<ReturnType<ReturnType<typeof openActivityCounts>>>, seconds: number): string {
  return (['received', 'stored', 'delivered'] as const)
    .map((counter) => `${counter} ${counts === undefined ? '-' : (counts[counter] / seconds).toFixed(1)}/s`)
    .join(', ')
}

function summarizeWork({ queues, outbox, deliveries }: WorkStatus): string {
  const jobs = Object.values(queues ?? {})
  const totalOf = (state: 'waiting' | 'active') => jobs.reduce((total, queue) => total + queue[state], 0)
  const inQueues = queues === null ? 'queue unavailable' : `waiting ${totalOf('waiting')}, running ${totalOf('active')}`
  return `${inQueues}, outbox ${outbox.waiting}, given up ${outbox.dead + deliveries.dead}, deliveries ${deliveries.waiting}`
}

async function waitIdle(options: OutputOptions & { timeout: number }): Promise<void> {
  const seconds = options.timeout
  await withPod(async (services) => {
    const deadline = performance.now() + seconds * 1_000
    while (!(await hasNoWorkLeft(services))) {
      if (performance.now() >= deadline)
        throw new CommandError(describeRemainingWork(await readStatus(services), seconds))
      await pause(POLL_INTERVAL_MS)
    }
  })
  print(options, { idle: true }, ['No work is left.'])
}

async function readStatus(services: Services): Promise<WorkStatus> {
  await waitForQueue(services.jobs)
  return readWorkStatus(services)
}

/** False while a store is unavailable; it may return before the timeout. */
async function hasNoWorkLeft(services: Services): Promise<boolean> {
  try {
    return await isIdle(services)
  } catch (error) {
    if (error instanceof QueueUnavailable || isDatabaseUnavailable(error)) return false
    throw error
  }
}

function describe(
  workStatus: WorkStatus,
  { perMinute }: RecentActivity,
  rows: readonly (readonly string[])[] = [],
): string[] {
  const { queues, outbox, deliveries } = workStatus
  return [
    ...(queues === null
      ? ['The queue is unavailable.']
      : table([
          ['queue', 'waiting', 'running', 'later', 'failed', 'oldest', 'a minute', 'workers'],
          ...QUEUES.map((name) => {
            const { waiting, active, delayed, failed, oldestWaiting, workers } = queues[name]
            return [
              name,
              waiting,
              active,
              delayed,
              failed,
              ageText(oldestWaiting),
              rateText(perMinute[name]),
              workers,
            ].map(String)
          }),
        ])),
    '',
    ...table([
      ['outbox', `${outbox.waiting} waiting, ${outbox.dead} given up, oldest ${ageText(outbox.oldest)}`],
      ['messages that wait', waitingText(workStatus)],
      ['deliveries', `${deliveries.due} due, ${deliveries.waiting} waiting, ${deliveries.dead} given up`],
      ['pods asleep', String(workStatus.podsAsleep)],
      ['last sweep', workStatus.lastSweep === null ? 'never' : `${ageText(workStatus.lastSweep)} ago`],
      ...rows,
    ]),
  ]
}

/** The activity of the last hour. */
function describePast({ received, inboundResults, deliveryAttempts }: RecentActivity): string[] {
  const { stored, ignored, rejected, waiting: deferred, dead: failed } = inboundResults
  return [
    'In the last hour:',
    ...table([
      ['received', listCounts(received)],
      ['stored', `${stored} stored, ${ignored} ignored`],
      ['rejected', listCounts(rejected)],
      ['deferred', listCounts(deferred)],
      ['failed', listCounts(failed)],
      ...Object.entries(deliveryAttempts).map(([queue, outcomes]) => [
        `delivery attempts, ${queue}`,
        listCounts(outcomes),
      ]),
    ]),
  ]
}

/** Largest count first. */
function listCounts(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([, one], [, other]) => other - one)
  return entries.map(([name, count]) => `${count} ${name}`).join(', ') || 'none'
}

function rateText(perMinute: number): string {
  return perMinute > 0 && perMinute < 10 ? perMinute.toFixed(1) : String(Math.round(perMinute))
}

function waitingText(workStatus: WorkStatus): string {
  const kinds = Object.entries(workStatus.waitingFor).map(([kind, count]) => `${count} for a ${kind}`)
  return kinds.length === 0 ? 'none' : kinds.join(', ')
}

function describeRemainingWork(workStatus: WorkStatus, seconds: number): string {
  if (workStatus.queues === null) return `The queue is unavailable after ${seconds} s; the remaining work is unknown.`
  const queues = workStatus.queues
  const remainingWork = [
    ...QUEUES.flatMap((name) => {
      const { waiting, active, delayed, workers } = queues[name]
      const jobs = countTexts(waiting + active + delayed, 'job', 'jobs')
      return jobs.map((text) => `${text} in ${name} (${workers === 0 ? 'no worker serves it' : `workers: ${workers}`})`)
    }),
    ...countTexts(workStatus.outbox.waiting, 'outbox row', 'outbox rows'),
    ...countTexts(workStatus.deliveries.due, 'due delivery', 'due deliveries'),
  ]
  return `Work is left after ${seconds} s: ${remainingWork.join(', ') || 'the last job ended in the meantime'}.`
}

function countTexts(count: number, one: string, many: string): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]
}

function ageText(seconds: number | null): string {
  if (seconds === null) return '-'
  if (seconds < 120) return `${Math.round(seconds)} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}
