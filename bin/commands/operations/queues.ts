import { type Command, Option } from 'commander'
import type { Actor } from '../../../src/domain/moderation/actor.js'
import {
  type ConfirmedQueueChange,
  type DiscardOutcome,
  discardJobs,
  drainQueue,
  findQueue,
  listJobs,
  listQueues,
  pauseQueue,
  promoteJobs,
  type QueueOverview,
  resumeQueue,
} from '../../../src/domain/operations/queues.js'
import { JOB_STATES, type JobState } from '../../../src/jobs/queues/inspect-queues.js'
import { QUEUES, type QueueName } from '../../../src/jobs/queues/queue-names.js'
import { listConnectedProcesses } from '../../../src/persistence/operations/restore-target.js'
import { moveFormerQueue } from '../../../src/services/former-queue.js'
import { queueSettings } from '../../../src/services/open-services.js'
import type { Services } from '../../../src/services/services.js'
import { presentOperation, presentQueue, presentQueueJob } from '../../../src/web/presenters/operations.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { readCount, readTime } from '../../options.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

const SHOWN = 50

interface ChangeOptions extends ActorOptions {
  readonly until?: Date
  readonly name?: string
  readonly pod?: string
  readonly yes?: boolean
}

/** Whether the queue has changed, or the number of jobs. */
type ChangeResult = boolean | number | DiscardOutcome

type Change = (
  services: Services,
  actor: Actor,
  queue: QueueName,
  change: ConfirmedQueueChange,
) => Promise<ChangeResult>

export function queueCommands(program: Command): void {
  const queues = program.command('queues').description('The queues: jobs, pause, drain and resume.')

  queues
    .command('list')
    .description('Lists the queues with their state and their work.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod queues list')
    .action(list)

  queues
    .command('move')
    .description(
      'Moves accepted messages from the former queue, after REDIS_URL was switched on or off. The pod must be stopped.',
    )
    .option('--lost', 'give up the messages of a lost Redis')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod queues move')
    .action(move)

  onQueue('jobs', 'Lists the jobs of a queue, without their data.')
    .addOption(new Option('--state <state>', 'where the jobs are').choices(JOB_STATES).default('waiting'))
    .option('--limit <number>', 'at most this many', readCount, SHOWN)
    .action(jobs)

  changeCommand('pause', 'Stops the workers of a queue; new jobs are accepted and wait.', pauseQueue).option(
    '--until <time>',
    'the time at which it resumes automatically',
    readTime,
  )
  changeCommand('resume', 'Ends a pause or a drain.', resumeQueue)
  withConfirmation(
    changeCommand('drain', 'Accepts no new jobs for a queue and finishes the existing ones.', drainQueue),
  ).option('--until <time>', 'the time at which it resumes automatically', readTime)
  changeCommand('promote', 'Makes the delayed jobs of a queue due, a thousand at most.', promoteJobs)
    .option('--name <name>', 'only jobs of this name')
    .option('--pod <host>', 'only jobs that deliver to this pod or fetch from it')
  withConfirmation(changeCommand('discard', 'Deletes waiting jobs; inbound messages become dead letters.', discardJobs))

  function onQueue(name: string, description: string): Command {
    return queues
      .command(name)
      .argument('<queue>', 'the name of the queue')
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod queues ${name} relay`)
  }

  function changeCommand(name: string, description: string, run: Change): Command {
    return withActorOptions(onQueue(name, description)).action((queue: string, options: ChangeOptions) =>
      change(queue, options, run),
    )
  }
}

async function list(options: OutputOptions): Promise<void> {
  const queues = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    return (await listQueues(services)) ?? []
  })
  const rows = queues.map(({ name, state, waiting, active, delayed, failed, perMinute, workers }) =>
    [name, state, waiting, active, delayed, failed, Math.round(perMinute.quarter * 10) / 10, workers].map(String),
  )
  print(
    options,
    queues.map(presentQueue),
    table([['queue', 'state', 'waiting', 'running', 'delayed', 'failed', 'a minute', 'workers'], ...rows]),
  )
}

async function move({ lost = false, ...options }: OutputOptions & { readonly lost?: boolean }): Promise<void> {
  const movedMessages = await withPod(async (services) => {
    const running = await listConnectedProcesses(services.db)
    if (running.length > 0) {
      throw new CommandError(`The database is in use by ${running.join(' and ')}: stop the pod first.`)
    }
    const { databaseUrl } = services.config
    if (databaseUrl === undefined) throw new Error('A command opens the pod on a database with an address.')
    return moveFormerQueue(services, queueSettings(services.config, databaseUrl), lost)
  })
  print(options, { moved: movedMessages }, [
    lost
      ? 'The messages of the former queue are given up.'
      : `${movedMessages} accepted messages are moved. Start the pod.`,
  ])
}

async function jobs(
  name: string,
  { state, limit, ...options }: OutputOptions & { state: JobState; limit: number },
): Promise<void> {
  const { items } = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    return listJobs(services, queueNamed(name), state, { limit })
  })
  const rows = items.map(({ id, name: job, addedAt, attempts, fault }) => [
    id,
    job,
    new Date(addedAt).toISOString(),
    String(attempts),
    fault ?? '-',
  ])
  print(options, items.map(presentQueueJob), [
    ...table([['job', 'name', 'added', 'attempts', 'fault'], ...rows]).map(printable),
    items.length === 1 ? '1 job' : `${items.length} jobs`,
  ])
}

async function change(name: string, { yes, ...options }: ChangeOptions, run: Change): Promise<void> {
  const queue = queueNamed(name)
  const { result, after } = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    const actor = await getActor(services, options, 'administration')
    const { reason, until, name: job, pod: host } = options
    const only = { ...(job !== undefined && { name: job }), ...(host !== undefined && { pod: host }) }
    const change = { reason, until, ...only, ...(yes && { confirm: queue }) }
    return { result: await run(services, actor, queue, change), after: await findQueue(services, queue) }
  })
  if (typeof result === 'object' && result.task !== undefined) {
    const { id, total } = result.task
    return print(options, presentOperation(result.task), [`operation ${id} is queued, for ${total} jobs`])
  }
  const changedCount = typeof result === 'object' ? result.count : result
  const outcome = typeof changedCount === 'number' ? { count: changedCount } : { changed: changedCount }
  print(options, { ...outcome, queue: after && presentQueue(after) }, [describe(changedCount, after)])
}

function describe(changed: number | boolean, queue: QueueOverview | undefined): string {
  if (typeof changed === 'number') return changed === 1 ? '1 job.' : `${changed} jobs.`
  return `The queue ${queue?.name} is ${queue?.state}.`
}

function queueNamed(text: string): QueueName {
  const queue = QUEUES.find((name) => name === text)
  if (queue === undefined) throw new CommandError(`There is no queue ${text}. The queues are ${QUEUES.join(', ')}.`)
  return queue
}
