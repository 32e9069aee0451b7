import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { isIdle, type QueueFacts, queueFacts } from '../../src/jobs/operations/queue-facts.js'
import { type RecentActivity, readRecentActivity } from '../../src/jobs/operations/recent-activity.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import { QueueUnavailable } from '../../src/jobs/queues/queue-unavailable.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { readBackupFigures } from '../../src/persistence/operations/backup-runs.js'
import type { Pod } from '../../src/pod/pod.js'
import { CommandError } from '../command-error.js'
import { untilInterrupted } from '../interruptible.js'
import { readDuration } from '../options.js'
import { type OutputOptions, print, table } from '../output.js'
import { queueAnswers } from '../queue-answers.js'
import { watchScreen } from '../watch-screen.js'
import { withPod } from '../with-pod.js'

const POLL_INTERVAL_MS = 200
const DEFAULT_TIMEOUT_SECONDS = 60
const WATCH_EVERY_SECONDS = 2

export function workCommands(program: Command): void {
  program
    .command('status')
    .description(
      'Shows pending and recent work: jobs by queue, outbox, deliveries, workers, rejected messages and why.',
    )
    .option('--watch', 'repeat until Ctrl-C: redraws a terminal, and writes a line each time elsewhere')
    .option('--interval <time>', 'between two looks of --watch', readDuration, WATCH_EVERY_SECONDS)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod status --watch')
    .action(status)

  program
    .command('wait-idle')
    .description('Waits until no job, outbox row or due delivery is left.')
    .option('--timeout <time>', 'how long at most, like 30, 90s or 5m', readDuration, DEFAULT_TIMEOUT_SECONDS)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod wait-idle --timeout 30')
    .action(waitIdle)
}

async function status(options: OutputOptions & { watch?: boolean; interval: number }): Promise<void> {
  if (options.watch) return watch(options)
  const { facts, past, backup } = await withPod(async (pod) => ({
    facts: await factsOf(pod),
    past: await readRecentActivity(pod),
    backup: await readBackupFigures(pod.db),
  }))
  print(options, { ...facts, lately: presentActivity(past), backup }, [
    ...describe(facts, past),
    ...table([['last backup', backup.age === null ? 'never' : `${age(backup.age)} ago`]]),
    '',
    ...describePast(past),
  ])
}

async function watch({ interval: seconds, json }: OutputOptions & { readonly interval: number }): Promise<void> {
  await withPod(async (pod) =>
    untilInterrupted(async (signal) => {
      let before: Totals | undefined
      const screen = { isTTY: process.stdout.isTTY && !json, write: (text: string) => process.stdout.write(text) }
      await watchScreen(screen, { seconds, signal }, async () => {
        const [facts, past] = await Promise.all([queueFacts(pod), readRecentActivity(pod)])
        const totals = totalsOf(past)
        const rates = ratesBetween(before, totals)
        before = totals
        const at = new Date().toISOString()
        return {
          lines: [`${at}  ${rates}`, '', ...describe(facts, past), '', ...describePast(past)],
          summary: json
            ? JSON.stringify({ at, ...facts, lately: presentActivity(past) })
            : `${at}  ${workIn(facts)}, ${rates}`,
        }
      })
    }),
  )
}

/** The activity as `--json` prints it: the names of these fields do not change. */
function presentActivity({ perMinute, received, inboundResults, deliveryAttempts }: RecentActivity) {
  const { stored, ignored, rejected, waiting, dead } = inboundResults
  const takenIn = { stored, passedOver: ignored, wrong: rejected, waited: waiting, dead }
  return { perMinute, received, takenIn, tries: deliveryAttempts }
}

/** Counters of the last hour at a time; the difference of two is a rate. */
interface Totals {
  readonly at: number
  readonly received: number
  readonly stored: number
  readonly delivered: number
}

function totalsOf({ received, inboundResults, deliveryAttempts }: RecentActivity): Totals {
  const delivered = Object.values(deliveryAttempts).reduce((sum, outcomes) => sum + (outcomes['arrived'] ?? 0), 0)
  return { at: performance.now(), received: received['accepted'] ?? 0, stored: inboundResults.stored, delivered }
}

/** Processes store their counters every few seconds, so that a rate moves in steps. */
function ratesBetween(before: Totals | undefined, after: Totals): string {
  const seconds = before === undefined ? 0 : (after.at - before.at) / 1_000
  const perSecond = (counter: 'received' | 'stored' | 'delivered') =>
    before === undefined || seconds === 0 ? '-' : (Math.max(0, after[counter] - before[counter]) / seconds).toFixed(1)
  return (['received', 'stored', 'delivered'] as const)
    .map((counter) => `${counter} ${perSecond(counter)}/s`)
    .join(', ')
}

function workIn({ queues, outbox, deliveries }: QueueFacts): string {
  const jobs = Object.values(queues ?? {})
  const sum = (state: 'waiting' | 'active') => jobs.reduce((total, facts) => total + facts[state], 0)
  const inQueues = queues === null ? 'queue out of reach' : `waiting ${sum('waiting')}, running ${sum('active')}`
  return `${inQueues}, outbox ${outbox.waiting}, given up ${outbox.dead + deliveries.dead}, deliveries ${deliveries.waiting}`
}

async function waitIdle(options: OutputOptions & { timeout: number }): Promise<void> {
  const seconds = options.timeout
  await withPod(async (pod) => {
    const deadline = performance.now() + seconds * 1_000
    while (!(await nothingLeft(pod))) {
      if (performance.now() >= deadline) throw new CommandError(whatIsLeft(await factsOf(pod), seconds))
      await pause(POLL_INTERVAL_MS)
    }
  })
  print(options, { idle: true }, ['Nothing is left to do.'])
}

async function factsOf(pod: Pod): Promise<QueueFacts> {
  await queueAnswers(pod.jobs)
  return queueFacts(pod)
}

/** False while a store is unavailable; it may return before the timeout. */
async function nothingLeft(pod: Pod): Promise<boolean> {
  try {
    return await isIdle(pod)
  } catch (error) {
    if (error instanceof QueueUnavailable || isDatabaseUnavailable(error)) return false
    throw error
  }
}

function describe(facts: QueueFacts, { perMinute }: RecentActivity): string[] {
  const { queues, outbox, deliveries } = facts
  return [
    ...(queues === null
      ? ['The queue is out of reach.']
      : table([
          ['queue', 'waiting', 'running', 'later', 'dead', 'oldest', 'a minute', 'workers'],
          ...QUEUES.map((name) => {
            const { waiting, active, delayed, failed, oldestWaiting, workers } = queues[name]
            return [name, waiting, active, delayed, failed, age(oldestWaiting), rate(perMinute[name]), workers].map(
              String,
            )
          }),
        ])),
    '',
    ...table([
      ['outbox', `${outbox.waiting} waiting, ${outbox.dead} given up, oldest ${age(outbox.oldest)}`],
      ['messages that wait', waitingFor(facts)],
      ['deliveries', `${deliveries.due} due, ${deliveries.waiting} waiting, ${deliveries.dead} given up`],
      ['pods asleep', String(facts.podsAsleep)],
      ['last sweep', facts.lastSweep === null ? 'never' : `${age(facts.lastSweep)} ago`],
    ]),
  ]
}

/** The activity of the last hour. */
function describePast({ received, inboundResults, deliveryAttempts }: RecentActivity): string[] {
  const { stored, ignored, rejected, waiting: deferred, dead: failed } = inboundResults
  return [
    'In the last hour:',
    ...table([
      ['received', listed(received)],
      ['stored', `${stored} stored, ${ignored} ignored`],
      ['rejected', listed(rejected)],
      ['deferred', listed(deferred)],
      ['failed', listed(failed)],
      ...Object.entries(deliveryAttempts).map(([queue, outcomes]) => [`delivery attempts, ${queue}`, listed(outcomes)]),
    ]),
  ]
}

/** Largest count first. */
function listed(counts: Readonly<Record<string, number>>): string {
  const entries = Object.entries(counts).sort(([, one], [, other]) => other - one)
  return entries.map(([name, count]) => `${count} ${name}`).join(', ') || 'none'
}

function rate(perMinute: number): string {
  return perMinute > 0 && perMinute < 10 ? perMinute.toFixed(1) : String(Math.round(perMinute))
}

function waitingFor(facts: QueueFacts): string {
  const kinds = Object.entries(facts.waitingFor).map(([kind, count]) => `${count} for a ${kind}`)
  return kinds.length === 0 ? 'none' : kinds.join(', ')
}

function whatIsLeft(facts: QueueFacts, seconds: number): string {
  if (facts.queues === null) return `The queue is unavailable after ${seconds} s; the remaining work is unknown.`
  const queues = facts.queues
  const left = [
    ...QUEUES.flatMap((name) => {
      const { waiting, active, delayed, workers } = queues[name]
      const jobs = counted(waiting + active + delayed, 'job', 'jobs')
      return jobs.map((text) => `${text} in ${name} (${workers === 0 ? 'no worker serves it' : `workers: ${workers}`})`)
    }),
    ...counted(facts.outbox.waiting, 'outbox row', 'outbox rows'),
    ...counted(facts.deliveries.due, 'due delivery', 'due deliveries'),
  ]
  return `Work is left after ${seconds} s: ${left.join(', ') || 'the last job ended meanwhile'}.`
}

function counted(count: number, one: string, many: string): string[] {
  return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`]
}

function age(seconds: number | null): string {
  if (seconds === null) return '-'
  if (seconds < 120) return `${Math.round(seconds)} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}
