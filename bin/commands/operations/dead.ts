import { type Command, Option } from 'commander'
import type { BackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import { readDeadLetterDetails, readDeadLetterPayload } from '../../../src/domain/operations/dead-letter-view.js'
import {
  dropAudited,
  dropConfirmed,
  groupDeadLetters,
  replayAudited,
} from '../../../src/domain/operations/dead-letters.js'
import type { DeadLetter, DeadLetterFilter } from '../../../src/jobs/dead-letters/dead-letter.js'
import { DEAD_LETTER_GROUPS, type DeadLetterGroup } from '../../../src/jobs/dead-letters/dead-letter-rows.js'
import { listDeadLetters } from '../../../src/jobs/dead-letters/find-dead-letters.js'
import { QUEUES, type QueueName } from '../../../src/jobs/queues/queue-names.js'
import type { Services } from '../../../src/services/services.js'
import { presentOperation } from '../../../src/web/presenters/operations.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { readCount, readTime } from '../../options.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

interface FilterOptions extends ActorOptions {
  readonly queue?: QueueName
  readonly fault?: string
  readonly pod?: string
  readonly entity?: string
  readonly since?: Date
  readonly until?: Date
  readonly all?: boolean
}

export function deadLetterCommands(program: Command): void {
  const dead = program.command('dead').description('Dead letters: jobs and messages that were given up.')

  withFilter(dead.command('list'))
    .description('Lists dead letters, newest first.')
    .option('--limit <number>', 'at most this many', readCount, 100)
    .addOption(new Option('--group-by <property>', 'count them by this property').choices(DEAD_LETTER_GROUPS))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead list --queue inbound')
    .action(list)

  dead
    .command('show <id>')
    .description('Shows one dead letter with its data and error, without texts, tokens and addresses of mails.')
    .option('--payload', 'show the entity of a public message too; the audit log records it')
    .option('--as <username>', 'the admin who reads it')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead show outbox-17')
    .action(show)

  withActorOptions(withFilter(dead.command('replay [id]')))
    .description('Replays dead letters: one by id, those of a queue or fault, or all.')
    .option('--all', 'all of them')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead replay --queue outbound --reason "The pod is back"')
    .action(replay)

  withConfirmation(withActorOptions(withFilter(dead.command('drop [id]'))))
    .description('Deletes dead letters: one by id, those of a queue or fault, or all.')
    .option('--all', 'all of them')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead drop outbox-17 --reason "Obsolete" --yes')
    .action(drop)
}

async function withQueue<Result>(run: (services: Services) => Promise<Result>): Promise<Result> {
  return withPod(async (services) => {
    await waitForQueue(services.jobs) // without a queue, the command fails with the reason
    return run(services)
  })
}

function withFilter(command: Command): Command {
  return command
    .addOption(new Option('--queue <name>', 'only those of one queue').choices(QUEUES))
    .option('--fault <fault>', 'only those with this fault')
    .option('--pod <host>', 'only those of this pod, where it is known')
    .option('--entity <type>', 'only those about this entity type, where it is known')
    .option('--since <time>', 'given up from this time on', readTime)
    .option('--until <time>', 'given up before this time', readTime)
}

async function list({
  groupBy,
  ...options
}: FilterOptions & { limit: number; groupBy?: DeadLetterGroup }): Promise<void> {
  if (groupBy !== undefined) return group(groupBy, options)
  const deadLetters = await withQueue((services) =>
    listDeadLetters(services, filterOf(undefined, options), options.limit),
  )
  print(options, deadLetters.map(present), [
    ...table(
      deadLetters.map((deadLetter) => [
        deadLetter.id,
        deadLetter.queue,
        deadLetter.name,
        deadLetter.failedAt.toISOString(),
        deadLetter.fault ?? '',
      ]),
    ),
    deadLetters.length === 0
      ? 'There are no dead letters.'
      : deadLetters.length === 1
        ? '1 dead letter'
        : `${deadLetters.length} dead letters`,
  ])
}

async function group(by: DeadLetterGroup, options: FilterOptions): Promise<void> {
  const groups = await withQueue(async (services) =>
    groupDeadLetters(services, await getActor(services, options, 'administration'), filterOf(undefined, options), by),
  )
  print(
    options,
    { groups },
    table(groups.map(({ value, count }) => [String(count), value ?? 'unknown'])).map(printable),
  )
}

async function show(id: string, options: OutputOptions & ActorOptions & { payload?: boolean }): Promise<void> {
  const read = options.payload ? readDeadLetterPayload : readDeadLetterDetails
  const deadLetter = await withQueue(async (services) =>
    read(services, await getActor(services, options, 'administration'), id),
  )
  const { data, recipientGuid, bytes, digest, entityXml, stack } = deadLetter
  const details = { recipient_guid: recipientGuid, bytes, digest, entity_xml: entityXml }
  print(options, { ...present(deadLetter), data, ...details, stack }, [
    ...table(
      Object.entries({ ...present(deadLetter), ...details }).map(([name, value]) => [name, String(value ?? '-')]),
    ),
    `data: ${JSON.stringify(data, null, 2)}`,
    ...(stack === null ? [] : [stack]),
  ])
}

async function replay(id: string | undefined, options: FilterOptions, command: Command): Promise<void> {
  const filter = readFilter(id, options, command)
  const { count: replayed, task } = await withQueue(async (services) =>
    replayAudited(services, await getActor(services, options, 'administration'), { filter, reason: options.reason }),
  )
  if (id !== undefined && replayed === 0) throw new CommandError(`There is no dead letter ${id}.`)
  if (task !== undefined) return printTask(options, task)
  print(options, { replayed }, [`${replayed} ${replayed === 1 ? 'dead letter' : 'dead letters'} replayed.`])
}

async function drop(
  id: string | undefined,
  options: FilterOptions & { yes?: boolean },
  command: Command,
): Promise<void> {
  const filter = readFilter(id, options, command)
  const { count: dropped, task } = await withQueue(async (services) => {
    const actor = await getActor(services, options, 'administration')
    const change = { filter, reason: options.reason }
    return options.yes ? dropAudited(services, actor, change) : dropConfirmed(services, actor, change)
  })
  if (id !== undefined && dropped === 0) throw new CommandError(`There is no dead letter ${id}.`)
  if (task !== undefined) return printTask(options, task)
  print(options, { dropped }, [`${dropped} ${dropped === 1 ? 'dead letter' : 'dead letters'} deleted.`])
}

/** A worker does the work. */
function printTask(options: OutputOptions, task: BackgroundTask): void {
  const { id, total } = task
  print(options, presentOperation(task), [`operation ${id} is queued, for ${total} dead letters`])
}

/** All dead letters need an explicit --all. */
function readFilter(id: string | undefined, options: FilterOptions, command: Command): DeadLetterFilter {
  const filter = filterOf(id, options)
  if (Object.keys(filter).length === 0 && !options.all) {
    command.error('error: say which are meant: an id, --queue, --fault, another filter or --all')
  }
  return filter
}

function filterOf(
  id: string | undefined,
  { queue, fault, pod, entity, since, until }: FilterOptions,
): DeadLetterFilter {
  return {
    ...(id !== undefined && { ids: [id] }),
    ...(queue !== undefined && { queue }),
    ...(fault !== undefined && { fault }),
    ...(pod !== undefined && { pod: pod.toLowerCase() }),
    ...(entity !== undefined && { entity }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
}

function present(deadLetter: DeadLetter) {
  return {
    id: deadLetter.id,
    queue: deadLetter.queue,
    name: deadLetter.name,
    fault: deadLetter.fault,
    pod: deadLetter.pod,
    entity: deadLetter.entity,
    guid: deadLetter.guid,
    attempts: deadLetter.attempts,
    trace: deadLetter.trace,
    created_at: deadLetter.createdAt.toISOString(),
    failed_at: deadLetter.failedAt.toISOString(),
  }
}
